// A node for which there is no other op becomes a Formula, if the language of Formula has its function.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_pattern_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/args.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::patterns {

namespace {

using Text = std::optional<std::string>;

/// An attribute of a node that is part of its formula, in the order of its placeholders: {1}, {2}.
struct FormulaAttribute {
  const char* name = nullptr;
  double otherwise = 0.0;
};

struct NodeFormula {
  std::string_view type;
  std::string_view text;  // {0}: the first input
  std::array<FormulaAttribute, 2> attributes = {};
};

// Source: the ONNX operator specifications.
constexpr std::array kUnary = {
    NodeFormula{"Sigmoid", "sigmoid({0})"},
    NodeFormula{"Tanh", "tanh({0})"},
    NodeFormula{"Exp", "exp({0})"},
    NodeFormula{"Log", "log({0})"},
    NodeFormula{"Sqrt", "sqrt({0})"},
    NodeFormula{"Erf", "erf({0})"},
    NodeFormula{"Abs", "abs({0})"},
    NodeFormula{"Neg", "-{0}"},
    NodeFormula{"Reciprocal", "1 / {0}"},
    NodeFormula{"Softplus", "softplus({0})"},
    NodeFormula{"Softsign", "{0} / (1 + abs({0}))"},
    NodeFormula{"Sign", "(0 < {0}) - ({0} < 0)"},
    NodeFormula{"HardSwish", "{0} * max(min({0} / 6 + 0.5, 1), 0)"},
    NodeFormula{"Mish", "{0} * tanh(softplus({0}))"},
    NodeFormula{"Swish", "{0} * sigmoid({1} * {0})", {{{"alpha", 1.0}}}},
    NodeFormula{"LeakyRelu", "max({0}, 0) + {1} * min({0}, 0)", {{{"alpha", 0.01}}}},
    NodeFormula{"ThresholdedRelu", "{0} * ({1} < {0})", {{{"alpha", 1.0}}}},
    NodeFormula{"Elu", "max({0}, 0) + {1} * (exp(min({0}, 0)) - 1)", {{{"alpha", 1.0}}}},
    NodeFormula{"Celu", "max({0}, 0) + {1} * (exp(min({0}, 0) / {1}) - 1)", {{{"alpha", 1.0}}}},
    NodeFormula{"Selu",
                "{2} * (max({0}, 0) + {1} * (exp(min({0}, 0)) - 1))",
                {{{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}}}},
    NodeFormula{"HardSigmoid", "max(min({1} * {0} + {2}, 1), 0)", {{{"alpha", 0.2}, {"beta", 0.5}}}},
};

/// Nodes with a boolean result, 1 or 0, and nodes with two inputs and a number as result.
constexpr std::array kOthers = {
    NodeFormula{"Less", "({0} < {1})"},
    NodeFormula{"Greater", "({1} < {0})"},
    NodeFormula{"LessOrEqual", "(1 - ({1} < {0}))"},
    NodeFormula{"GreaterOrEqual", "(1 - ({0} < {1}))"},
    NodeFormula{"Not", "(1 - {0})"},
    NodeFormula{"And", "({0} * {1})"},
    NodeFormula{"Or", "max({0}, {1})"},
};

constexpr std::array kOfNumbers = {
    NodeFormula{"Add", "{0} + {1}"},
    NodeFormula{"Sub", "{0} - {1}"},
    NodeFormula{"Mul", "{0} * {1}"},
    NodeFormula{"Div", "{0} / {1}"},
};

template <std::size_t count>
const NodeFormula* findFormula(const std::array<NodeFormula, count>& formulas, std::string_view type) {
  const auto* const found = std::ranges::find(formulas, type, &NodeFormula::type);
  return found == formulas.end() ? nullptr : found;
}

Text numberText(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  const std::string text = fmt::format("{}", static_cast<float>(value));
  return value < 0.0 ? fmt::format("({})", text) : text;
}

/// The formula of one node, and of upstream nodes with boolean results.
class FormulaReading {
 public:
  FormulaReading(Reading graph, Name made) : m_graph(graph), m_made(made) {}

  Found run() {
    const ::onnx::NodeProto* const node = m_graph.maker(m_made);
    const Text text = node ? ofNode(*node, m_made) : std::nullopt;
    if (!text || m_inputs.empty() || !isInOrder()) return std::nullopt;
    FoundOperation found{.operation = "Formula", .attributes = {{"y", *text}}};
    for (std::size_t i = 0; i < m_inputs.size(); ++i) found.inputs.emplace_back(kNames[i], m_inputs[i]);
    const std::vector<std::string_view> others(kNames.begin() + 1,
                                               kNames.begin() + static_cast<std::ptrdiff_t>(m_inputs.size()));
    if (!others.empty()) found.attributes["inputs"] = fmt::format("{}", fmt::join(others, ", "));
    std::vector<std::string> parameters;
    for (const FoundWeight& weight : m_weights) parameters.push_back(weight.parameter);
    if (!parameters.empty()) found.attributes["parameters"] = fmt::format("{}", fmt::join(parameters, ", "));
    if (!m_weights.empty()) found.dtype = floatTypeOf(m_weights.front().constant->data_type());
    found.weights = std::move(m_weights);
    return found;
  }

 private:
  static constexpr std::array<std::string_view, 8> kNames = {"x", "b", "c", "d", "e", "f", "g", "h"};

  /// Layers with weights of one dtype may be converted as a whole.
  bool isInOrder() const {
    return std::ranges::all_of(m_weights, [this](const FoundWeight& weight) {
      return weight.constant->data_type() == m_weights.front().constant->data_type();
    });
  }

  Text ofNode(const ::onnx::NodeProto& node, Name tensor) {
    if (!m_graph.makerOf(node.op_type(), tensor)) return std::nullopt;  // of another domain
    const std::string& type = node.op_type();
    if (const NodeFormula* const formula = findFormula(kUnary, type)) return filled(*formula, node, 1);
    if (const NodeFormula* const formula = findFormula(kOfNumbers, type)) return filled(*formula, node, 2);
    if (type == "Max" || type == "Min" || type == "Sum") return folded(node);
    if (type == "Clip") return clip(node);
    if (type == "Pow") return power(node);
    if (type == "PRelu") return slope(node);
    if (type == "Where") return where(node);
    return type == "Cast" ? truth(inputOf(node, 0)) : std::nullopt;
  }

  Text filled(const NodeFormula& formula, const ::onnx::NodeProto& node, int numInputs) {
    fmt::dynamic_format_arg_store<fmt::format_context> arguments;
    for (int i = 0; i < numInputs; ++i) {
      const Text text = operand(inputOf(node, i));
      if (!text) return std::nullopt;
      arguments.push_back(*text);
    }
    for (const FormulaAttribute& attribute : formula.attributes) {
      if (!attribute.name) continue;
      const Text text = numberText(realOf(node, attribute.name, attribute.otherwise));
      if (!text) return std::nullopt;
      arguments.push_back(*text);
    }
    return fmt::vformat(formula.text, arguments);
  }

  /// max(max(a, b), c)
  Text folded(const ::onnx::NodeProto& node) {
    Text all = operand(inputOf(node, 0));
    for (int i = 1; i < node.input_size() && all; ++i) {
      const Text next = operand(node.input(i));
      if (!next) return std::nullopt;
      if (node.op_type() == "Sum")
        all = fmt::format("{} + {}", *all, *next);
      else
        all = fmt::format("{}({}, {})", node.op_type() == "Max" ? "max" : "min", *all, *next);
    }
    return all;
  }

  /// Limits are inputs since opset 11, attributes before.
  Text clip(const ::onnx::NodeProto& node) {
    Text text = operand(inputOf(node, 0));
    const auto limit = [&](int input, const char* attribute) -> std::optional<double> {
      if (const auto* const given = findAttribute(node, attribute)) return static_cast<double>(given->f());
      return m_graph.number(inputOf(node, input));
    };
    for (const auto& [input, attribute] : {std::pair(1, "min"), std::pair(2, "max")}) {
      const std::optional<double> number = limit(input, attribute);
      if (!number && !inputOf(node, input).empty()) return std::nullopt;
      if (!text || !number || !std::isfinite(*number) || std::abs(*number) > kNoLimit) continue;
      text = fmt::format("{}({}, {})", input == 1 ? "max" : "min", *text, *numberText(*number));
    }
    return text;
  }
  static constexpr double kNoLimit = 3e38;
  static constexpr int kDeepestTruth = 8;

  Text power(const ::onnx::NodeProto& node) {
    const Text base = operand(inputOf(node, 0));
    const std::optional<double> exponent = m_graph.number(inputOf(node, 1));
    const Text number = exponent ? numberText(*exponent) : std::nullopt;
    return base && number ? Text(fmt::format("pow({}, {})", *base, *number)) : std::nullopt;
  }

  Text slope(const ::onnx::NodeProto& node) {
    const Text x = operand(inputOf(node, 0)), factor = operand(inputOf(node, 1));
    return x && factor ? Text(fmt::format("max({0}, 0) + {1} * min({0}, 0)", *x, *factor)) : std::nullopt;
  }

  Text where(const ::onnx::NodeProto& node) {
    const Text condition = truth(inputOf(node, 0));
    const Text a = condition ? operand(inputOf(node, 1)) : std::nullopt;
    const Text b = a ? operand(inputOf(node, 2)) : std::nullopt;
    return b ? Text(fmt::format("where({}, {}, {})", *condition, *a, *b)) : std::nullopt;
  }

  /// The formula of a boolean result, as 1 or 0.
  Text truth(Name tensor, int depth = 0) {
    if (depth > kDeepestTruth) return std::nullopt;  // a cycle, or no formula written by a person
    const ::onnx::NodeProto* const node = m_graph.maker(tensor);
    const NodeFormula* const formula = node ? findFormula(kOthers, node->op_type()) : nullptr;
    if (!formula || !m_graph.makerOf(formula->type, tensor)) return std::nullopt;
    fmt::dynamic_format_arg_store<fmt::format_context> arguments;
    const bool isOfTruths = formula->type == "Not" || formula->type == "And" || formula->type == "Or";
    for (const std::string& input : node->input()) {
      const Text text = isOfTruths ? truth(input, depth + 1) : operand(input);
      if (!text) return std::nullopt;
      arguments.push_back(*text);
    }
    return fmt::vformat(formula->text, arguments);
  }

  Text operand(Name tensor) {
    if (const auto number = m_graph.number(tensor)) return numberText(*number);
    if (m_graph.constant(tensor)) return parameter(tensor);
    const std::int32_t type = m_graph.elementType(tensor);
    if (tensor.empty() || (type != 0 && !floatTypeOf(type)) || !mayHaveSameShape(m_graph, tensor, m_made))
      return std::nullopt;
    return input(m_graph.source(tensor));
  }

  Text input(Name source) {
    const auto known = std::ranges::find(m_inputs, source);
    const auto index = static_cast<std::size_t>(known - m_inputs.begin());
    if (index == kNames.size()) return std::nullopt;
    if (known == m_inputs.end()) m_inputs.push_back(source);
    return std::string(kNames[index]);
  }

  /// One number a column.
  Text parameter(Name tensor) {
    const std::optional<std::int64_t> extent = lastExtent(m_graph, m_made);
    const auto* const vector = vectorWeight(m_graph, tensor);
    if (!vector || !extent || *(vector->dims().end() - 1) != *extent) return std::nullopt;
    const std::string name = m_weights.empty() ? "weight" : fmt::format("weight{}", m_weights.size() + 1);
    m_weights.push_back({.parameter = name, .constant = vector, .isSpread = true});
    return name;
  }

  Reading m_graph;
  Name m_made;
  std::vector<std::string> m_inputs;
  std::vector<FoundWeight> m_weights;
};

}  // namespace

Found formula(Reading graph, Name tensor) { return FormulaReading(graph, tensor).run(); }

}  // namespace fuseline::patterns
