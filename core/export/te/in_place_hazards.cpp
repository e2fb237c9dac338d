// Follows a tensor through the ops that hand it on, and asks who reads it after the sum.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/in_place_hazards.h"

#include "core/ops/external.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Values = std::set<ValueId>;

bool addsInPlace(const Node& node) {
  return node.operation->name == "AddExtraInput" && node.attributes.boolean("in_place");
}

/// Ops of TransformerEngine that return what they got, at least sometimes: on one rank, without a recipe, outside
/// training.
bool isSame(const Node& node) {
  constexpr std::array<std::string_view, 8> kNames = {"MakeExtraOutput", "Identity",  "Reshape",       "Quantize",
                                                      "Dropout",         "AllGather", "ReduceScatter", "AllReduce"};
  return std::ranges::find(kNames, node.operation->name) != kNames.end();
}

class SharedTensor {
 public:
  /// All values that are the tensor which `sum` writes to, before it does. apart: sums that are not made in place.
  SharedTensor(const Graph& graph, NodeId sum, const std::set<NodeId>& apart)
      : m_graph(graph), m_sum(sum), m_apart(apart) {
    add(graph.node(sum).inputs[1]);
  }
  const Values& values() const { return m_values; }

 private:
  void add(ValueId value) {
    if (!m_values.insert(value).second) return;
    if (const NodeId producer = m_graph.value(value).producer; producer >= 0) addThrough(producer, value);
    for (const Use& use : m_graph.value(value).uses) addThrough(use.node, value);
  }

  void addThrough(NodeId id, ValueId value) {
    const Node& node = m_graph.node(id);
    if (id == m_sum) return;
    if (isSame(node)) {
      add(node.inputs[0]);
      for (const ValueId output : node.outputs) add(output);
    } else if (addsInPlace(node) && !m_apart.contains(id) && (value == node.inputs[1] || value == node.outputs[0])) {
      add(node.inputs[1]);
      add(node.outputs[0]);
    }
  }

  const Graph& m_graph;
  NodeId m_sum;
  const std::set<NodeId>& m_apart;
  Values m_values;
};

/// A linear op with quantizers keeps codes in place of its input.
bool keepsItself(const Node& node, SavedTensor saved) {
  const TensorQuantizers& input = node.quantizers.input;
  const bool keepsCodes = input.columnwise || input.isDequantizedInBackward;
  return saved.kind == OperandKind::Output || (saved.kind == OperandKind::Input && !(saved.slot == 0 && keepsCodes));
}

std::optional<ValueId> keptFor(const Node& node, const Values& values) {
  for (const SavedTensor& saved : node.context.tensors) {
    if (!keepsItself(node, saved)) continue;
    const auto& slots = saved.kind == OperandKind::Output ? node.outputs : node.inputs;
    if (const ValueId value = slots[static_cast<std::size_t>(saved.slot)]; values.contains(value)) return value;
  }
  return std::nullopt;
}

std::optional<std::string> hazardOf(const Graph& graph, NodeId sum, const std::set<NodeId>& apart) {
  const SharedTensor tensor(graph, sum, apart);
  const auto nameOf = [&](ValueId value) { return graph.value(value).name; };
  for (const Node& node : graph.nodes())
    if (const auto value = keptFor(node, tensor.values()))
      return fmt::format("{} keeps that tensor, {}, for backward", node.id, nameOf(*value));
  for (const ValueId value : tensor.values()) {
    if (graph.value(value).producer < 0 && isOfExternal(nameOf(value)))
      return fmt::format("{} may keep that tensor, {}, for backward", externalOf(nameOf(value)), nameOf(value));
    if (graph.value(value).isOutput) return fmt::format("that tensor, {}, is an output", nameOf(value));
    for (const Use& use : graph.value(value).uses)
      if (use.node > sum && !isSame(graph.node(use.node)))
        return fmt::format("{} still reads that tensor, {}", graph.node(use.node).id, nameOf(value));
  }
  return std::nullopt;
}

}  // namespace

std::vector<InPlaceHazard> inPlaceHazards(const Graph& graph) {
  std::vector<InPlaceHazard> hazards;
  std::set<NodeId> apart;
  for (NodeId node = 0; node < static_cast<NodeId>(graph.nodes().size()); ++node)
    if (addsInPlace(graph.node(node)))
      if (std::optional<std::string> reason = hazardOf(graph, node, apart)) {
        hazards.push_back({node, std::move(*reason)});
        apart.insert(node);
      }
  return hazards;
}

}  // namespace fuseline
