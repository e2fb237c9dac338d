// One statement per node. Extents that are constants in the model stay constants.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/torch_nodes.h"

#include "core/export/onnx/kept/kept_nodes.h"
#include "core/export/onnx/onnx_node_order.h"
#include "core/export/te/python_text.h"
#include "core/export/te/te_operation.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

using Text = std::optional<std::string>;
using Ints = std::vector<std::int64_t>;

class NodeStatements {
 public:
  NodeStatements(const ::onnx::GraphProto& graph, const std::vector<std::string>& inputs)
      : m_graph(graph), m_reading(graph) {
    for (const std::string& input : inputs) m_names.emplace(input, input);
  }

  /// The lines of forward(), then its return statement.
  Text lines(const std::vector<std::string>& outputs) {
    std::string text;
    for (const auto& node : m_graph.node()) {
      const Text value = valueOf(node);
      if (!value) return std::nullopt;
      std::vector<std::string> made;
      for (const std::string& output : node.output()) made.push_back(named(output));
      text += fmt::format("        {} = {}\n", fmt::join(made, ", "), *value);
    }
    std::vector<std::string> results;
    for (const std::string& output : outputs) results.push_back(named(output));
    return text + fmt::format("        return {}\n", fmt::join(results, ", "));
  }

 private:
  const std::string& named(const std::string& tensor) {
    return m_names.try_emplace(tensor, fmt::format("v{}", m_names.size())).first->second;
  }

  /// A number, a tensor of numbers, or the variable that holds a node's output.
  Text operand(const ::onnx::NodeProto& node, int index) {
    const std::string& name = inputOf(node, index);
    if (name.empty()) return std::nullopt;
    if (const auto number = m_reading.number(name)) return pythonNumber(*number);
    if (m_reading.constant(name)) return tensor(name);
    return named(name);
  }

  Text tensor(const std::string& name) {
    const ::onnx::TensorProto& constant = *m_reading.constant(name);
    if (!floatTypeOf(constant.data_type())) return std::nullopt;
    const Result<Tensor> elements = keptTensor({.name = name, .tensor = &constant}, {});
    if (!elements) return std::nullopt;
    std::vector<std::string> numbers;
    for (const double value : elements->toDoubles()) numbers.push_back(pythonNumber(value));
    return fmt::format("x.new_tensor([{}]).reshape({})", fmt::join(numbers, ", "), shapeOf(constant));
  }

  static Ints integersOf(const ::onnx::NodeProto& node, const char* attribute) {
    const auto* const found = findAttribute(node, attribute);
    return found ? Ints(found->ints().begin(), found->ints().end()) : Ints();
  }

  Text valueOf(const ::onnx::NodeProto& node) {
    constexpr std::array kInfix = {std::pair("Add", "+"), std::pair("Sub", "-"), std::pair("Mul", "*"),
                                   std::pair("Div", "/"), std::pair("Pow", "**")};
    constexpr std::array kFunctions = {std::pair("Sqrt", "sqrt"),
                                       std::pair("Exp", "exp"),
                                       std::pair("Log", "log"),
                                       std::pair("Neg", "neg"),
                                       std::pair("Tanh", "tanh"),
                                       std::pair("Abs", "abs"),
                                       std::pair("Sigmoid", "sigmoid"),
                                       std::pair("Erf", "erf"),
                                       std::pair("Sin", "sin"),
                                       std::pair("Cos", "cos"),
                                       std::pair("Reciprocal", "reciprocal"),
                                       std::pair("Relu", "relu"),
                                       std::pair("Floor", "floor")};
    if (!node.domain().empty()) return std::nullopt;
    const std::string& type = node.op_type();
    const auto is = [&](const auto& each) { return type == each.first; };
    const Text a = operand(node, 0);
    if (!a) return std::nullopt;
    if (const auto* const found = std::ranges::find_if(kInfix, is); found != kInfix.end())
      return with(operand(node, 1),
                  [&](const std::string& b) { return fmt::format("{} {} {}", *a, found->second, b); });
    if (const auto* const found = std::ranges::find_if(kFunctions, is); found != kFunctions.end())
      return fmt::format("torch.{}({})", found->second, *a);
    if (type == "MatMul")
      return with(operand(node, 1), [&](const std::string& b) { return fmt::format("torch.matmul({}, {})", *a, b); });
    if (type == "Softmax") return fmt::format("torch.softmax({}, dim={})", *a, integerOf(node, "axis", -1));
    if (type == "Transpose") return transpose(node, *a);
    if (type == "Where") return where(node, *a);
    if (type == "Concat") return concat(node);
    if (type == "Split") return split(node, *a);
    if (type == "Identity" || type == "Dropout") return a;
    if (type == "Cast") return cast(node, *a);
    return ofShape(node, *a);
  }

  template <class Function>
  static Text with(const Text& operand, Function text) {
    return operand ? Text(text(*operand)) : std::nullopt;
  }

  static Text transpose(const ::onnx::NodeProto& node, const std::string& a) {
    const Ints perm = integersOf(node, "perm");
    return perm.empty() ? std::nullopt : Text(fmt::format("{}.permute({})", a, perm));
  }

  Text where(const ::onnx::NodeProto& node, const std::string& condition) {
    const Text a = operand(node, 1), b = operand(node, 2);
    return a && b ? Text(fmt::format("torch.where({}, {}, {})", condition, *a, *b)) : std::nullopt;
  }

  Text concat(const ::onnx::NodeProto& node) {
    std::vector<std::string> parts;
    for (int i = 0; i < node.input_size(); ++i) {
      const Text part = operand(node, i);
      if (!part) return std::nullopt;
      parts.push_back(*part);
    }
    return fmt::format("torch.cat([{}], dim={})", fmt::join(parts, ", "), integerOf(node, "axis", 0));
  }

  Text split(const ::onnx::NodeProto& node, const std::string& a) const {
    const std::int64_t axis = integerOf(node, "axis", 0);
    if (inputOf(node, 1).empty()) return fmt::format("torch.chunk({}, {}, dim={})", a, node.output_size(), axis);
    const auto sizes = m_reading.integers(inputOf(node, 1));
    return sizes ? Text(fmt::format("torch.split({}, {}, dim={})", a, *sizes, axis)) : std::nullopt;
  }

  static Text cast(const ::onnx::NodeProto& node, const std::string& a) {
    const auto dtype = floatTypeOf(static_cast<std::int32_t>(integerOf(node, "to", 0)));
    return dtype ? Text(fmt::format("{}.to({})", a, torchType(*dtype))) : std::nullopt;
  }

  /// Nodes with axes or a shape as second input.
  Text ofShape(const ::onnx::NodeProto& node, const std::string& a) const {
    const auto list = m_reading.integers(inputOf(node, 1));
    const std::string& type = node.op_type();
    if (!list) return std::nullopt;
    if (type == "Reshape") return reshape(node, a, *list);
    if (type == "Expand")
      return fmt::format("torch.broadcast_to({0}, torch.broadcast_shapes({0}.shape, {1}))", a, *list);
    if (type == "Slice") return slice(node, a, *list);
    if (type == "Squeeze") return fmt::format("{}.squeeze({})", a, *list);
    if (type == "ReduceMean" || type == "ReduceSum")
      return fmt::format("{}.{}(dim={}, keepdim={})", a, type == "ReduceMean" ? "mean" : "sum", *list,
                         pythonBool(integerOf(node, "keepdims", 1) != 0));
    if (type != "Unsqueeze" || list->size() != 1) return std::nullopt;
    return fmt::format("{}.unsqueeze({})", a, list->front());
  }

  static Text reshape(const ::onnx::NodeProto& node, const std::string& a, const Ints& shape) {
    std::vector<std::string> extents;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const bool isKept = shape[axis] == 0 && integerOf(node, "allowzero", 0) == 0;
      extents.push_back(isKept ? fmt::format("{}.shape[{}]", a, axis) : fmt::format("{}", shape[axis]));
    }
    return fmt::format("{}.reshape([{}])", a, fmt::join(extents, ", "));
  }

  /// With one axis and steps of one.
  Text slice(const ::onnx::NodeProto& node, const std::string& a, const Ints& starts) const {
    const auto ends = m_reading.integers(inputOf(node, 2)), axes = m_reading.integers(inputOf(node, 3));
    const auto steps = m_reading.integers(inputOf(node, 4));
    const bool isPlain = inputOf(node, 4).empty() || (steps && *steps == Ints{1});
    if (starts.size() != 1 || !ends || ends->size() != 1 || !axes || axes->size() != 1 || !isPlain) return std::nullopt;
    const bool isToTheEnd = ends->front() >= std::numeric_limits<std::int32_t>::max();
    const std::string part =
        fmt::format("[..., {}:{}]", starts.front(), isToTheEnd ? "" : fmt::format("{}", ends->front()));
    if (axes->front() == -1) return a + part;
    return fmt::format("{0}.transpose({1}, -1){2}.transpose({1}, -1)", a, axes->front(), part);
  }

  const ::onnx::GraphProto& m_graph;
  OnnxReading m_reading;
  std::map<std::string, std::string> m_names;  // variables by tensors
};

std::vector<std::string> numbered(const char* name, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(i == 0 ? name : fmt::format("{}{}", name, i + 1));
  return names;
}

}  // namespace

std::optional<std::string> torchNodes(const std::string& nodes, const std::string& className, std::size_t numInputs,
                                      std::size_t numOutputs) {
  const std::vector<std::string> inputs = numbered("x", numInputs), outputs = numbered("y", numOutputs);
  ::onnx::GraphProto graph;
  OnnxOpsets opsets;
  const auto constants = writeKeptNodes(nodes, {.id = "kept", .inputs = inputs, .outputs = outputs}, graph, opsets);
  if (!constants || !constants->empty() || graph.input_size() > 0) return std::nullopt;
  sortNodes(graph);
  const Text lines = NodeStatements(graph, inputs).lines(outputs);
  if (!lines) return std::nullopt;
  return fmt::format(
      "class {}(torch.nn.Module):\n    \"\"\"Computes what {} nodes of the ONNX model do.\"\"\"\n\n"
      "    def forward(self, {}):\n{}",
      className, graph.node_size(), fmt::join(inputs, ", "), *lines);
}

}  // namespace fuseline
