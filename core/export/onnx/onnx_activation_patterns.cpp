// Functions of one tensor, whole or in pieces, and gates: their multiplications with another tensor.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_pattern_parts.h"
#include "core/export/onnx/onnx_polynomial.h"

#include <algorithm>
#include <array>
#include <map>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline::patterns {

namespace {

/// A function of one tensor, and the op that is it, and the one that multiplies by it.
struct Activation {
  const char* unary;
  const char* gated;
  std::optional<std::string> (*argument)(Reading graph, Name tensor);
  const char* approximate = nullptr;  // of GELU

  Json attributes() const { return approximate ? Json{{"approximate", approximate}} : Json::object(); }
};

using Argument = std::optional<std::string>;

Argument ofSigmoid(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Sigmoid", tensor);
  return node ? Argument(inputOf(*node, 0)) : std::nullopt;
}

// GELU. Source: Hendrycks & Gimpel 2016, "Gaussian error linear units": x / 2 (1 + erf(x / sqrt(2))), and its
// approximation, x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which te.ops has.

Argument geluNode(Reading graph, Name tensor, std::string_view approximation) {
  const auto* const node = graph.makerOf("Gelu", tensor);
  return node && textOf(*node, "approximate", "none") == approximation ? Argument(inputOf(*node, 0)) : std::nullopt;
}

/// The factors of a multiplication tree, and the multiplications on the way.
void addFactors(Reading graph, Name tensor, int depth, std::vector<std::string>& factors) {
  constexpr int kDeepest = 4;
  if (depth > kDeepest || graph.number(tensor)) return;
  factors.push_back(tensor);
  for (const char* const type : {"Mul", "Div"})
    if (const auto* const node = graph.makerOf(type, tensor))
      for (const std::string& input : node->input()) addFactors(graph, input, depth + 1, factors);
}

/// A node of this type that a factor is, or is a sum with.
std::vector<std::string> functionsIn(Reading graph, const std::vector<std::string>& factors, const char* type) {
  std::vector<std::string> found;
  const auto add = [&](Name tensor) {
    if (graph.makerOf(type, tensor)) found.push_back(tensor);
  };
  for (const std::string& factor : factors) {
    add(factor);
    const auto* const sum = graph.makerOf("Add", factor);
    if (!sum) continue;
    for (const std::string& part : sum->input()) {
      std::vector<std::string> inner;
      addFactors(graph, part, 0, inner);
      for (const std::string& each : inner) add(each);
    }
  }
  return found;
}

using Terms = std::map<std::pair<int, int>, double>;

/// x, if the tensor is `value` of x and f = type(argument of x), a multiplication with x as a factor.
Argument inPieces(Reading graph, Name tensor, const char* type, const Terms& argument, const Terms& value) {
  std::vector<std::string> factors;
  addFactors(graph, tensor, 0, factors);
  if (factors.size() < 2) return std::nullopt;
  for (const std::string& f : functionsIn(graph, factors, type))
    for (const std::string& x : factors) {
      const auto inner = polynomialOf(graph, inputOf(*graph.maker(f), 0), x);
      if (!inner || !inner->isAbout(argument)) continue;
      const auto outer = polynomialOf(graph, tensor, x, f);
      if (outer && outer->isAbout(value)) return x;
    }
  return std::nullopt;
}

const Terms kHalfOfSum = {{{1, 0}, 0.5}, {{1, 1}, 0.5}};  // x / 2 (1 + f)

Argument ofGelu(Reading graph, Name tensor) {
  constexpr double kRoot = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  static const Terms kCubic = {{{1, 0}, kRoot}, {{3, 0}, 0.044715 * kRoot}};
  const Argument whole = geluNode(graph, tensor, "tanh");
  return whole ? whole : inPieces(graph, tensor, "Tanh", kCubic, kHalfOfSum);
}

Argument ofExactGelu(Reading graph, Name tensor) {
  static const Terms kScaled = {{{1, 0}, 1.0 / std::numbers::sqrt2}};
  const Argument whole = geluNode(graph, tensor, "none");
  return whole ? whole : inPieces(graph, tensor, "Erf", kScaled, kHalfOfSum);
}

Argument ofRelu(Reading graph, Name tensor) {
  if (const auto* const node = graph.makerOf("Relu", tensor)) return inputOf(*node, 0);
  return ofTwo(graph, "Max", tensor,
               [&](Name x, Name zero) { return graph.isNumber(zero, 0.0) ? Argument(x) : std::nullopt; });
}

Argument ofSquaredRelu(Reading graph, Name tensor) {
  if (const auto* const power = graph.makerOf("Pow", tensor))
    return graph.isNumber(inputOf(*power, 1), 2.0) ? ofRelu(graph, inputOf(*power, 0)) : std::nullopt;
  const auto* const node = graph.makerOf("Mul", tensor);
  if (!node || node->input_size() != 2) return std::nullopt;
  const Argument one = ofRelu(graph, node->input(0)), other = ofRelu(graph, node->input(1));
  return one && other && isSame(graph, *one, *other) ? one : std::nullopt;
}

/// x sigmoid(factor x)
Argument timesSigmoid(Reading graph, Name tensor, double factor) {
  return inPieces(graph, tensor, "Sigmoid", {{{1, 0}, factor}}, {{{1, 1}, 1.0}});
}

Argument ofSilu(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Swish", tensor);
  if (node && realOf(*node, "alpha", 1.0) == 1.0) return inputOf(*node, 0);
  return timesSigmoid(graph, tensor, 1.0);
}

Argument ofQuickGelu(Reading graph, Name tensor) { return timesSigmoid(graph, tensor, 1.702); }

constexpr std::array kActivations = {
    Activation{"GELU", "GEGLU", ofGelu, "tanh"},  Activation{"GELU", "GEGLU", ofExactGelu, "none"},
    Activation{"SReLU", "SReGLU", ofSquaredRelu}, Activation{"ReLU", "ReGLU", ofRelu},
    Activation{"QGELU", "QGEGLU", ofQuickGelu},   Activation{"SiLU", "SwiGLU", ofSilu},
    Activation{nullptr, "GLU", ofSigmoid},
};

/// The tensor of which the two are the halves of the last axis.
Argument halvesOf(Reading graph, Name first, Name second) {
  const auto* const node = graph.makerOf("Split", first);
  const bool isSplit = node && node->output_size() == 2 && graph.maker(second) == node &&
                       graph.source(first) == node->output(0) && graph.source(second) == node->output(1);
  if (!isSplit || graph.axisFromEnd(inputOf(*node, 0), integerOf(*node, "axis", 0)) != -1) return std::nullopt;
  const auto sizes = graph.integers(inputOf(*node, 1));
  const bool isUneven = !inputOf(*node, 1).empty() && (!sizes || sizes->size() != 2 || (*sizes)[0] != (*sizes)[1]);
  return isUneven ? std::nullopt : Argument(inputOf(*node, 0));
}

}  // namespace

Found gate(Reading graph, Name tensor) {
  return ofTwo(graph, "Mul", tensor, [&](Name activated, Name linear) -> Found {
    for (const Activation& activation : kActivations) {
      const Argument argument = activation.argument(graph, activated);
      const Argument whole = argument ? halvesOf(graph, *argument, linear) : std::nullopt;
      if (whole)
        return FoundOperation{
            .operation = activation.gated, .attributes = activation.attributes(), .inputs = {{"x", *whole}}};
    }
    const Found sampled = sampledActivation(graph, activated);
    const Argument whole = sampled ? halvesOf(graph, sampled->inputs[0].second, linear) : std::nullopt;
    if (whole)
      return FoundOperation{
          .operation = gatedForm(*sampled), .attributes = gatedAttributes(*sampled), .inputs = {{"x", *whole}}};
    return std::nullopt;
  });
}

Found activation(Reading graph, Name tensor) {
  for (const Activation& each : kActivations) {
    const Argument argument = each.unary ? each.argument(graph, tensor) : std::nullopt;
    if (argument && !graph.constant(*argument))
      return FoundOperation{.operation = each.unary, .attributes = each.attributes(), .inputs = {{"x", *argument}}};
  }
  return std::nullopt;
}

}  // namespace fuseline::patterns

namespace fuseline {

std::string gatedForm(const FoundOperation& activation) {
  const bool isSigmoid = activation.operation == "Formula" && activation.attributes.value("y", "") == "sigmoid(x)";
  const auto isMeant = [&](const patterns::Activation& each) {
    return each.unary ? each.unary == activation.operation : isSigmoid;
  };
  const auto* const found = std::ranges::find_if(patterns::kActivations, isMeant);
  return found == patterns::kActivations.end() ? "" : found->gated;
}

Json gatedAttributes(const FoundOperation& activation) {
  return activation.operation == "GELU" ? activation.attributes : Json::object();
}

}  // namespace fuseline
