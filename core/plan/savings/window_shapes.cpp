// Names are left out; everything else that a plan follows from is in a shape.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/savings/window_shapes.h"

#include "core/ops/attention_form.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Few graphs have more than three.
int quantizersNumber(const LinearQuantizers& quantizers, std::vector<LinearQuantizers>& distinct) {
  const auto found = std::ranges::find(distinct, quantizers);
  const auto number = static_cast<int>(found - distinct.begin());
  if (found == distinct.end()) distinct.push_back(quantizers);
  return number;
}

std::string opText(const Node& node, int quantizers) {
  std::string text = fmt::format("{} {} {} {} {}", node.operation->name, quantizers, node.hasPartialGradients,
                                 node.hasShardedParameters, node.hasFrozenParameters);
  for (const auto& [name, value] : node.attributes)
    if (name != kAttentionMaskName)  // of dropout masks: it follows from the op's name
      text += fmt::format("\n{} {} {}", name, value.index(), toString(value));
  return text;
}

/// The entries of switches that name the op: "Rule@op".
std::string switchText(const Node& node, const RuleSwitches& switches) {
  std::string text;
  for (const auto* entries : {&switches.without, &switches.with})
    for (const std::string& entry : *entries)
      if (const auto at = entry.find('@'); at != std::string::npos && node.isAt(entry.substr(at + 1)))
        text += '\n' + entry;
  return text;
}

}  // namespace

/// FNV-1a.
std::size_t ShapeHash::operator()(const WindowShape& shape) const {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const int part : shape) hash = (hash ^ static_cast<std::uint32_t>(part)) * 0x100000001b3;
  return hash;
}

WindowShapes::WindowShapes(const Graph& graph, const RuleSwitches& switches, ShapeNumbers& numbers) : m_graph(graph) {
  for (const Node& node : graph.nodes())
    m_ops.push_back(numbers.ops.of(opText(node, quantizersNumber(node.quantizers, numbers.quantizers)) +
                                   switchText(node, switches)));
  for (const Value& value : graph.values())
    m_specs.push_back(numbers.specs.of(fmt::format("{} {}", toString(value.spec), value.needsGradient)));
}

WindowShape WindowShapes::of(const std::vector<NodeId>& nodes) const {
  WindowShape shape;
  std::vector<ValueId> values;  // few, so that a search is faster than a map
  const auto numberOf = [&](ValueId value) {
    const auto number = static_cast<int>(std::ranges::find(values, value) - values.begin());
    if (number == static_cast<int>(values.size())) values.push_back(value);
    return number;
  };
  for (const NodeId id : nodes) {
    const Node& node = m_graph.node(id);
    shape.insert(shape.end(), {m_ops[toIndex(id)], static_cast<int>(node.inputs.size())});
    for (const ValueId input : node.inputs) shape.insert(shape.end(), {numberOf(input), m_specs[toIndex(input)]});
    for (const ValueId output : node.outputs) {
      const Value& value = m_graph.value(output);
      const bool isRead = value.isOutput || std::ranges::any_of(value.uses, [&](const Use& use) {
                            return !std::ranges::binary_search(nodes, use.node);
                          });
      shape.insert(shape.end(), {numberOf(output), isRead ? 1 : 0});
    }
  }
  addSequentials(nodes, shape);
  return shape;
}

/// From the innermost one outward, for each op in one.
void WindowShapes::addSequentials(const std::vector<NodeId>& nodes, WindowShape& shape) const {
  if (m_graph.sequentials().empty()) return;
  Numbering<int> numbers;
  for (const NodeId id : nodes) {
    for (int each = m_graph.node(id).sequential; each >= 0; each = m_graph.sequentials()[toIndex(each)].parent)
      shape.push_back(numbers.of(each));
    shape.push_back(-1);
  }
}

}  // namespace fuseline
