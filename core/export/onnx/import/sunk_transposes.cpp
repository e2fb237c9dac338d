// Walks downstream: which tensors are transposes of others, and which nodes compute rows of these alike.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/sunk_transposes.h"

#include "core/export/onnx/onnx_pattern_parts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

using Permutation = std::vector<std::int64_t>;

/// A tensor is the transpose of another.
struct Turned {
  std::string base;
  Permutation order;
  bool isOfNorm = false;
};

template <std::size_t count>
bool isAmong(const std::array<std::string_view, count>& types, const ::onnx::NodeProto& node) {
  return node.domain().empty() && std::ranges::find(types, std::string_view(node.op_type())) != types.end();
}

bool isReduction(const ::onnx::NodeProto& node) {
  static constexpr std::array<std::string_view, 4> kTypes = {"ReduceMean", "ReduceSum", "ReduceSumSquare", "ReduceL2"};
  return isAmong(kTypes, node);
}

bool isWholeNorm(const ::onnx::NodeProto& node) {
  static constexpr std::array<std::string_view, 4> kTypes = {"LayerNormalization", "RMSNormalization",
                                                             "SimplifiedLayerNormalization", "LpNormalization"};
  return isAmong(kTypes, node);
}

bool isElementwise(const ::onnx::NodeProto& node) {
  static constexpr std::array<std::string_view, 10> kTypes = {"Add",  "Sub",        "Mul", "Div",  "Pow",
                                                              "Sqrt", "Reciprocal", "Abs", "Cast", "Identity"};
  return isAmong(kTypes, node);
}

class SinkingTransposes {
 public:
  explicit SinkingTransposes(::onnx::GraphProto& graph) : m_graph(graph), m_reading(graph) {
    for (const auto& input : graph.input()) m_taken.insert(input.name());
    for (const auto& tensor : graph.initializer()) m_taken.insert(tensor.name());
    for (const auto& node : graph.node()) m_taken.insert(node.output().begin(), node.output().end());
  }

  void run() {
    findWaysToNorms();
    for (const ::onnx::NodeProto& node : m_graph.node())
      if (!isSunk(node)) *m_nodes.Add() = node;
    if (m_numSunk == 0) return;
    dropUnread();
    m_graph.mutable_node()->Swap(&m_nodes);
  }

 private:
  bool isByRow(const ::onnx::NodeProto& node) const {
    if (node.output_size() == 0 || node.input_size() == 0) return false;
    if (node.output_size() > 1) return isSplit(node);
    if (isReduction(node))
      return patterns::numLastAxes(m_reading, node, node.input(0)) == 1 && integerOf(node, "keepdims", 1) == 1;
    if (isWholeNorm(node)) return m_reading.axisFromEnd(node.input(0), integerOf(node, "axis", -1)) == -1;
    return isElementwise(node) || isPart(node);
  }

  static bool isSplit(const ::onnx::NodeProto& node) { return node.op_type() == "Split" && node.domain().empty(); }

  /// One of the parts along another axis, such as the queries of packed queries, keys and values: without that axis.
  bool isPart(const ::onnx::NodeProto& node) const {
    if (!node.domain().empty()) return false;
    if (node.op_type() == "Squeeze") return squeezedAxis(node).has_value();
    const auto* const index =
        node.op_type() == "Gather" && node.input_size() == 2 ? m_reading.constant(node.input(1)) : nullptr;
    return index && index->dims_size() == 0;
  }

  std::optional<std::int64_t> squeezedAxis(const ::onnx::NodeProto& squeeze) const {
    const auto* const attribute = findAttribute(squeeze, "axes");
    if (attribute) return attribute->ints_size() == 1 ? std::optional(attribute->ints(0)) : std::nullopt;
    const auto axes = m_reading.integers(inputOf(squeeze, 1));
    return axes && axes->size() == 1 ? std::optional(axes->front()) : std::nullopt;
  }

  /// Tensors that a norm reads, as far as rows are computed alike.
  void findWaysToNorms() {
    for (int position = m_graph.node_size() - 1; position >= 0; --position) {
      const ::onnx::NodeProto& node = m_graph.node(position);
      const bool isNorm = isReduction(node) || isWholeNorm(node);
      const bool isOnWay = isNormed(node);
      if ((isNorm || isOnWay) && isByRow(node)) m_normed.insert(node.input().begin(), node.input().end());
    }
  }

  bool isNormed(const ::onnx::NodeProto& node) const {
    return std::ranges::any_of(node.output(), [&](const std::string& output) { return m_normed.contains(output); });
  }

  /// Is it a number, or one for each column?
  bool isSameForRows(const std::string& name) const {
    const auto* const constant = m_reading.constant(name);
    if (!constant) return false;
    const Shape shape = shapeOf(*constant);
    return shape.empty() || numElements(shape) == shape.back();
  }

  /// All inputs but constants are transposes in this order; base: of the last one. Nothing: they are not.
  std::optional<Turned> commonOf(const ::onnx::NodeProto& node) const {
    std::optional<Turned> common;
    for (const std::string& input : node.input()) {
      const auto found = m_turned.find(input);
      if (found == m_turned.end()) {
        if (input.empty() || isSameForRows(input) || (common && (isReduction(node) || isPart(node) || isSplit(node))))
          continue;
        return std::nullopt;
      }
      if (common && common->order != found->second.order) return std::nullopt;
      const bool isOfNorm = (common && common->isOfNorm) || found->second.isOfNorm;
      common = found->second;
      common->isOfNorm = isOfNorm;
    }
    const auto isWider = [&](const std::string& input) {
      const auto* const constant = m_reading.constant(input);
      return constant && constant->dims_size() > static_cast<int>(common->order.size());
    };
    return common && std::ranges::none_of(node.input(), isWider) ? common : std::nullopt;
  }

  std::string unique(const std::string& wish) {
    std::string name = wish;
    for (int number = 2; !m_taken.insert(name).second; ++number) name = wish + std::to_string(number);
    return name;
  }

  bool isSunk(const ::onnx::NodeProto& node) {
    if (node.op_type() == "Transpose" && node.domain().empty()) {
      noteTranspose(node);
      return false;
    }
    std::optional<Turned> common = isByRow(node) ? commonOf(node) : std::nullopt;
    const bool isNorm = isReduction(node) || isWholeNorm(node);
    if (!common || !(common->isOfNorm || isNorm || isNormed(node))) return false;
    common->isOfNorm = common->isOfNorm || isNorm;
    ::onnx::NodeProto before = node;
    for (std::string& input : *before.mutable_input())
      if (const auto turned = m_turned.find(input); turned != m_turned.end()) input = turned->second.base;
    for (std::string& output : *before.mutable_output()) output = unique(output + "/turned");
    if (isSplit(node) && !moveAxis(before, *common)) return false;
    if (isPart(node) && !leaveOutAxis(before, *common)) return false;
    *m_nodes.Add() = before;
    for (int i = 0; i < node.output_size(); ++i) {
      common->base = before.output(i);
      addTranspose(node, node.output(i), *common);
      m_turned.insert_or_assign(node.output(i), *common);
    }
    ++m_numSunk;
    return true;
  }

  void noteTranspose(const ::onnx::NodeProto& node) {
    const auto* const order = findAttribute(node, "perm");
    if (!order || order->ints_size() < 3 || node.input_size() != 1 || node.output_size() != 1) return;
    if (order->ints(order->ints_size() - 1) != order->ints_size() - 1) return;
    m_turned.insert_or_assign(node.output(0),
                              Turned{node.input(0), Permutation(order->ints().begin(), order->ints().end())});
  }

  /// Where the axis was before the transpose. Nothing: it is the last one, or none.
  static std::optional<std::int64_t> axisBefore(std::int64_t axis, const Turned& turned) {
    const auto rank = static_cast<std::int64_t>(turned.order.size());
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank - 1 ? std::optional(turned.order[static_cast<std::size_t>(axis)]) : std::nullopt;
  }

  static void setAxis(::onnx::NodeProto& node, std::int64_t axis) {
    auto& attributes = *node.mutable_attribute();
    attributes.erase(
        std::remove_if(attributes.begin(), attributes.end(), [](const auto& each) { return each.name() == "axis"; }),
        attributes.end());
    ::onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("axis");
    attribute.set_type(::onnx::AttributeProto::INT);
    attribute.set_i(axis);
  }

  static bool moveAxis(::onnx::NodeProto& split, const Turned& turned) {
    const auto axis = axisBefore(integerOf(split, "axis", 0), turned);
    if (axis) setAxis(split, *axis);
    return axis.has_value();
  }

  /// Takes the part where its axis was before the transpose. False: it is one of the last axis.
  bool leaveOutAxis(::onnx::NodeProto& part, Turned& turned) {
    const bool isSqueeze = part.op_type() == "Squeeze";
    const auto axis = axisBefore(isSqueeze ? *squeezedAxis(part) : integerOf(part, "axis", 0), turned);
    if (!axis) return false;
    std::erase(turned.order, *axis);
    for (std::int64_t& each : turned.order) each -= each > *axis ? 1 : 0;
    if (isSqueeze) {  // as a Gather, which has its axis as an attribute in all opsets
      part.set_op_type("Gather");
      part.clear_attribute();
      while (part.input_size() > 1) part.mutable_input()->RemoveLast();
      part.add_input(zero());
    }
    setAxis(part, *axis);
    return true;
  }

  /// The name of a constant, the index of the first.
  const std::string& zero() {
    if (!m_zero.empty()) return m_zero;
    m_zero = unique("turned/zero");
    ::onnx::TensorProto& tensor = *m_graph.add_initializer();
    tensor.set_name(m_zero);
    tensor.set_data_type(::onnx::TensorProto::INT64);
    tensor.add_int64_data(0);
    return m_zero;
  }

  void addTranspose(const ::onnx::NodeProto& node, const std::string& output, const Turned& turned) {
    ::onnx::NodeProto& transpose = *m_nodes.Add();
    transpose.set_op_type("Transpose");
    transpose.set_name(node.name() + "/turned");
    transpose.add_input(turned.base);
    transpose.add_output(output);
    ::onnx::AttributeProto& order = *transpose.add_attribute();
    order.set_name("perm");
    order.set_type(::onnx::AttributeProto::INTS);
    for (const std::int64_t axis : turned.order) order.add_ints(axis);
  }

  /// Transposes that only norms read.
  void dropUnread() {
    std::map<std::string, int> readers;
    for (const auto& output : m_graph.output()) ++readers[output.name()];
    for (const auto& node : m_nodes)
      for (const std::string& input : readBy(node)) ++readers[input];
    const auto isUnread = [&](const ::onnx::NodeProto& node) {
      return node.op_type() == "Transpose" && node.output_size() == 1 && m_turned.contains(node.output(0)) &&
             readers[node.output(0)] == 0;
    };
    ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> kept;
    for (auto node = m_nodes.rbegin(); node != m_nodes.rend(); ++node) {
      if (!isUnread(*node))
        *kept.Add() = *node;
      else
        --readers[node->input(0)];
    }
    std::reverse(kept.pointer_begin(), kept.pointer_end());
    m_nodes.Swap(&kept);
  }

  ::onnx::GraphProto& m_graph;
  const OnnxReading m_reading;
  std::set<std::string> m_taken, m_normed;
  std::string m_zero;  // empty: there is none yet
  std::map<std::string, Turned> m_turned;
  ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> m_nodes;  // those of the graph afterwards
  int m_numSunk = 0;
};

bool isNormOfRows(const ::onnx::NodeProto& node) { return isReduction(node) || isWholeNorm(node); }

}  // namespace

void sinkTransposes(::onnx::GraphProto& graph) {
  if (std::ranges::any_of(graph.node(), isNormOfRows)) SinkingTransposes(graph).run();
}

}  // namespace fuseline
