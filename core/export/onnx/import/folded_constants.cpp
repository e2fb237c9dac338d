// Only the constants that other nodes read are computed.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/folded_constants.h"

#include "core/export/onnx/onnx_numbers.h"
#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_weights.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

namespace {

class ConstantFolding {
 public:
  ConstantFolding(const ::onnx::GraphProto& graph, const std::filesystem::path& folder)
      : m_graph(graph), m_reading(graph), m_numbers(m_reading, {}, folder) {
    for (const auto& tensor : graph.initializer()) m_constants.emplace(tensor.name(), sizeOf(tensor));
    for (const auto& output : graph.output()) m_outputs.insert(output.name());
    for (const auto& node : graph.node()) noteNode(node);
  }

  /// The constants, by name.
  std::map<std::string, ::onnx::TensorProto> run() {
    for (const auto& node : m_graph.node())
      if (!isComputed(node))
        for (const std::string& input : readBy(node)) fold(input);
    return std::move(m_folded);
  }

 private:
  using Node = ::onnx::NodeProto;

  void noteNode(const Node& node) {
    for (const std::string& output : node.output()) m_makers.emplace(output, &node);
    if (node.op_type() != "Constant" && !isConstantNode(node)) return;
    std::int64_t size = 0;
    for (const std::string& input : node.input())
      if (!input.empty()) size = std::min(size + m_constants.find(input)->second, kMostElementsInAll);
    for (const std::string& output : node.output()) {
      const auto* const value = node.op_type() == "Constant" ? m_reading.constant(output) : nullptr;
      m_constants.emplace(output, value ? sizeOf(*value) : size);
    }
  }

  static std::int64_t sizeOf(const ::onnx::TensorProto& tensor) {
    return std::clamp<std::int64_t>(numElements(shapeOf(tensor)), 0, kMostElementsInAll);
  }

  bool isConstantNode(const Node& node) const {
    constexpr std::array kRandom = {"RandomNormal",      "RandomUniform", "RandomNormalLike",
                                    "RandomUniformLike", "Multinomial",   "Bernoulli"};
    if (std::ranges::find(kRandom, node.op_type()) != kRandom.end() || node.input_size() == 0) return false;
    return std::ranges::all_of(node.input(),
                               [this](const auto& name) { return name.empty() || m_constants.contains(name); });
  }

  /// Is nothing but its result of interest?
  bool isComputed(const Node& node) const {
    return node.output_size() > 0 && m_constants.contains(node.output(0)) && !m_outputs.contains(node.output(0));
  }

  /// A conversion of float64 is none that patterns read through.
  bool isRead(const Node& node) const {
    constexpr std::array kRead = {"Constant", "Identity", "Dropout", "Transpose", "QuantizeLinear", "DequantizeLinear"};
    return std::ranges::find(kRead, node.op_type()) != kRead.end() ||
           (node.op_type() == "Cast" && floatTypeOf(static_cast<std::int32_t>(integerOf(node, "to", 0))) &&
            floatTypeOf(m_reading.elementType(inputOf(node, 0))));
  }

  void fold(const std::string& tensor) {
    const auto made = m_makers.find(tensor);
    if (made == m_makers.end() || !m_constants.contains(tensor) || m_outputs.contains(tensor)) return;
    if (!m_seen.insert(tensor).second) return;
    const Node& node = *made->second;
    if (isRead(node)) {
      for (const std::string& input : node.input()) fold(input);
    } else if (const auto constant = constantOf(tensor)) {
      m_folded.emplace(tensor, *constant);
    }
  }

  std::optional<::onnx::TensorProto> constantOf(const std::string& tensor) {
    const std::int32_t type = m_reading.elementType(tensor);
    if (!floatTypeOf(type)) return std::nullopt;
    const auto numbers = m_numElements > kMostElementsInAll ? nullptr : m_numbers.of(tensor);
    if (!numbers || numElements(numbers->shape) > std::max(m_constants.find(tensor)->second, kMostNewElements))
      return std::nullopt;
    m_numElements += numElements(numbers->shape);
    ::onnx::TensorProto constant;
    constant.set_name(tensor);
    constant.set_data_type(type);
    for (const std::int64_t extent : numbers->shape) constant.add_dims(extent);
    const Tensor rounded = Tensor::fromDoubles({.dtype = *floatTypeOf(type), .shape = numbers->shape}, numbers->values);
    constant.set_raw_data(rounded.data.data(), rounded.data.size());
    return constant;
  }

  static constexpr std::int64_t kMostElementsInAll = std::int64_t{1} << 26;  // numbers are kept in double precision
  /// A large mask that a few nodes make stays these nodes.
  static constexpr std::int64_t kMostNewElements = std::int64_t{1} << 14;

  const ::onnx::GraphProto& m_graph;
  const OnnxReading m_reading;
  OnnxNumbers m_numbers;
  std::map<std::string_view, const Node*> m_makers;
  /// Tensors that depend on no input, and the number of elements that they are computed from.
  std::map<std::string, std::int64_t, std::less<>> m_constants;
  std::set<std::string, std::less<>> m_outputs;
  std::set<std::string> m_seen;
  std::int64_t m_numElements = 0;  // of all that are folded
  std::map<std::string, ::onnx::TensorProto> m_folded;
};

}  // namespace

void foldConstants(::onnx::GraphProto& graph, const std::filesystem::path& folder) {
  std::map<std::string, ::onnx::TensorProto> constants = ConstantFolding(graph, folder).run();
  if (constants.empty()) return;
  for (auto& node : *graph.mutable_node())
    for (std::string& output : *node.mutable_output())
      if (constants.contains(output)) output.clear();
  const auto isGone = [](const ::onnx::NodeProto& node) {
    return node.output_size() > 0 &&
           std::ranges::all_of(node.output(), [](const std::string& output) { return output.empty(); });
  };
  auto& nodes = *graph.mutable_node();
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), isGone), nodes.end());
  for (auto& [name, constant] : constants) *graph.add_initializer() = std::move(constant);
}

}  // namespace fuseline
