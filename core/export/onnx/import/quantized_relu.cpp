// Follows tensors upstream to operators whose results are not negative.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/quantized_relu.h"

#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_weights.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

constexpr int kLongestWay = 32;
constexpr double kAlmostOne = 0.999;  // quantized itself

template <std::size_t N>
bool isOneOf(const std::array<std::string_view, N>& types, const ::onnx::NodeProto& node) {
  return std::ranges::find(types, std::string_view(node.op_type())) != types.end();
}

class QuantizedRelus {
 public:
  QuantizedRelus(::onnx::GraphProto& graph, const std::filesystem::path& folder)
      : m_graph(graph), m_folder(folder), m_reading(graph) {
    for (const auto& node : graph.node())
      for (const std::string& output : node.output()) m_makers.emplace(output, &node);
  }

  void run() {
    std::vector<std::pair<int, std::string>> found;
    for (int position = 0; position < m_graph.node_size(); ++position)
      if (const ::onnx::NodeProto& node = m_graph.node(position); clips(node) && !isPositive(node.input(0), 0))
        found.emplace_back(position, node.input(0));
    if (found.empty()) return;
    ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> nodes;
    auto next = found.begin();
    for (int position = 0; position < m_graph.node_size(); ++position) {
      ::onnx::NodeProto& node = *m_graph.mutable_node(position);
      if (next != found.end() && next->first == position) {
        addRelu(node, *nodes.Add());
        ++next;
      }
      *nodes.Add() = node;
    }
    m_graph.mutable_node()->Swap(&nodes);
  }

 private:
  static void addRelu(::onnx::NodeProto& quantize, ::onnx::NodeProto& relu) {
    relu.set_op_type("Relu");
    relu.set_name(quantize.name().empty() ? "" : quantize.name() + "/Relu");
    relu.add_input(quantize.input(0));
    relu.add_output(quantize.output(0) + "/clipped");
    quantize.set_input(0, relu.output(0));
  }

  /// Without a zero point the codes are unsigned, and 0 is the lowest.
  bool clips(const ::onnx::NodeProto& node) const {
    if (node.op_type() != "QuantizeLinear" || node.input_size() < 2 || node.output_size() == 0) return false;
    if (m_reading.constant(node.input(0))) return false;
    const std::string& name = inputOf(node, 2);
    if (name.empty()) return !findAttribute(node, "output_dtype");
    const auto* const zero = m_reading.constant(name);
    const bool isUnsigned = zero && zero->data_type() == ::onnx::TensorProto::UINT8;
    if (!zero || (!isUnsigned && zero->data_type() != ::onnx::TensorProto::INT8)) return false;
    const Result<std::vector<std::byte>> codes = elementBytes(*zero, m_folder);
    const std::byte lowest{static_cast<unsigned char>(isUnsigned ? 0x00 : 0x80)};
    return codes && !codes->empty() && std::ranges::count(*codes, lowest) == std::ssize(*codes);
  }

  /// 1 + erf(x), as in GELU. input: the number.
  bool isShifted(const ::onnx::NodeProto& node, int input) const {
    const std::string& x = inputOf(node, 1 - input);
    const bool isBounded = m_reading.makerOf("Erf", x) || m_reading.makerOf("Tanh", x);
    return isBounded && m_reading.number(inputOf(node, input)).value_or(0.0) >= kAlmostOne;
  }

  bool isPositive(const std::string& tensor, int depth) const {
    const std::optional<double> number = m_reading.number(tensor);
    if (number) return *number >= 0.0;
    const auto maker = m_makers.find(tensor);
    if (maker == m_makers.end() || depth > kLongestWay) return false;
    const ::onnx::NodeProto& node = *maker->second;
    constexpr std::array<std::string_view, 8> kPositive = {"Relu", "Softmax", "Sigmoid",     "Abs",
                                                           "Exp",  "Sqrt",    "HardSigmoid", "ReduceL2"};
    constexpr std::array<std::string_view, 18> kKeepsSigns = {
        "Identity",   "Cast",      "Dropout",   "Reshape",          "Transpose", "Squeeze",
        "Unsqueeze",  "Flatten",   "Slice",     "Expand",           "Gather",    "Split",
        "ReduceMean", "ReduceMax", "ReduceSum", "DequantizeLinear", "MaxPool",   "Reciprocal"};
    constexpr std::array<std::string_view, 6> kOfPositive = {"Add", "Mul", "Div", "Max", "Min", "Concat"};
    if (node.op_type() == "QuantizeLinear") return clips(node) || isPositive(node.input(0), depth + 1);
    if (node.op_type() == "Clip") return m_reading.number(inputOf(node, 1)).value_or(-1.0) >= 0.0;
    if (isOneOf(kPositive, node)) return true;
    if (node.op_type() == "Pow") return m_reading.number(inputOf(node, 1)) == 2.0;
    if (node.op_type() == "Mul" && inputOf(node, 0) == inputOf(node, 1)) return true;
    if (node.op_type() == "Add" && (isShifted(node, 0) || isShifted(node, 1))) return true;
    if (isOneOf(kKeepsSigns, node)) return isPositive(inputOf(node, 0), depth + 1);
    const auto isPositiveHere = [&](const std::string& input) { return isPositive(input, depth + 1); };
    if (node.op_type() == "Where") return isPositiveHere(inputOf(node, 1)) && isPositiveHere(inputOf(node, 2));
    return isOneOf(kOfPositive, node) && std::ranges::all_of(node.input(), isPositiveHere);
  }

  ::onnx::GraphProto& m_graph;
  const std::filesystem::path& m_folder;
  const OnnxReading m_reading;
  std::map<std::string, const ::onnx::NodeProto*> m_makers;
};

bool isQuantizing(const ::onnx::NodeProto& node) { return node.op_type() == "QuantizeLinear"; }

}  // namespace

void addQuantizedRelus(::onnx::GraphProto& graph, const std::filesystem::path& folder) {
  if (std::ranges::any_of(graph.node(), isQuantizing)) QuantizedRelus(graph, folder).run();
}

}  // namespace fuseline
