// Neighbors that may change places: both orders are the same mathematics, and perhaps only one of them is fused.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/document_operation.h"
#include "core/plan/suggestions/sources.h"
#include "core/plan/suggestions/written_op.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// f(s x) = s f(x) for s > 0; for ReLU only then.
bool passesScaleOn(const FusibleOperation& operation, double scale) {
  static constexpr std::string_view kLinear[] = {"BasicLinear", "Reshape", "Identity"};
  return std::ranges::count(kLinear, operation.name) > 0 || (operation.name == "ReLU" && scale > 0.0);
}

/// Processes each element separately, independent of the shape.
bool isOfAnyShape(const Graph& graph, const Node& node) {
  const FusibleOperation& operation = *node.operation;
  const bool isPlain = operation.isElementwise() && operation.parameters.empty() && !operation.settle;
  return isPlain && node.inputs.size() == 1 && node.outputs.size() == 1 &&
         graph.value(node.inputs.front()).spec.shape == graph.value(node.outputs.front()).spec.shape;
}

/// Each row for itself: norms and biases of the last axis.
bool isOfAnyRows(const Node& node) {
  if (node.operation->name == "Bias") return true;
  const bool isNorm = node.operation->name == "RMSNorm" || node.operation->name == "LayerNorm";
  return node.operation->name == "L2Normalization" ||
         (isNorm && node.attributes.integers("normalized_shape").size() == 1);
}

bool keepsRows(const Graph& graph, const Node& view) {
  const Shape& before = graph.value(view.inputs.front()).spec.shape;
  const Shape& after = graph.value(view.outputs.front()).spec.shape;
  return !before.empty() && !after.empty() && before.back() == after.back();
}

bool commute(const Graph& graph, const Node& a, const Node& b) {
  const auto passes = [](const Node& scale, const Node& other) {
    return scale.operation->name == "ConstantScale" && passesScaleOn(*other.operation, scale.attributes.real("scale"));
  };
  const auto reshapes = [&](const Node& view, const Node& other) {
    if (view.operation->name != "Reshape") return false;
    return isOfAnyShape(graph, other) || (isOfAnyRows(other) && keepsRows(graph, view));
  };
  return passes(a, b) || passes(b, a) || reshapes(a, b) || reshapes(b, a);
}

/// The only consumer of the node's output, as its main input.
const Node* onlyReader(const Graph& graph, const Node& node) {
  if (node.outputs.empty()) return nullptr;
  const Value& value = graph.value(node.outputs.front());
  const bool isAlone = value.uses.size() == 1 && !value.isOutput && value.uses.front().slot == 0;
  return isAlone ? &graph.node(value.uses.front().node) : nullptr;
}

class Swap {
 public:
  /// Both of one section.
  Swap(const WrittenOp& first, const Node& firstNode, const WrittenOp& second, const Node& secondNode)
      : m_section(*first.section),
        m_first(first.id),
        m_firstIn{first.id, firstNode.operation->inputs.front().name},
        m_firstOut{first.id, firstNode.operation->outputs.front().name},
        m_secondIn{second.id, secondNode.operation->inputs.front().name},
        m_secondOut{second.id, secondNode.operation->outputs.front().name} {}

  /// Is the first op's output consumed by the second alone, in the file? The graph shows neither an output of a block
  /// that this instance leaves unread, nor bypassed ops in between.
  bool isDirect() const {
    const auto numWires = std::ranges::count(m_section.wires, m_firstOut, &Wire::from);
    return numWires == 1 && std::ranges::count(m_section.wires, Wire{m_firstOut, m_secondIn}) == 1 &&
           std::ranges::find(m_section.outputs, m_firstOut, &DocumentOutput::from) == m_section.outputs.end();
  }

  /// The main wires change their ends; the ops change their places on the canvas.
  EditGroup edit() const {
    EditGroup group{.label = fmt::format("Move {} after {}", m_first, m_secondIn.node)};
    for (const Wire& wire : m_section.wires)
      if (turned(wire) != wire) group.edits.emplace_back(RemoveWire{wire});
    for (const Wire& wire : m_section.wires)
      if (turned(wire) != wire) group.edits.emplace_back(AddWire{turned(wire)});
    for (DocumentOutput output : m_section.outputs)
      if (output.from == m_secondOut) {
        output.from = m_firstOut;
        group.edits.emplace_back(ReplaceOutput{output.id, output});
      }
    group.edits.emplace_back(MoveNode{m_first, positionOf(m_secondIn.node)});
    group.edits.emplace_back(MoveNode{m_secondIn.node, positionOf(m_first)});
    return group;
  }

 private:
  Wire turned(const Wire& wire) const {
    if (wire.to == m_firstIn) return {wire.from, m_secondIn};
    if (wire.to == m_secondIn) return {m_secondOut, m_firstIn};
    if (wire.from == m_secondOut) return {m_firstOut, wire.to};
    return wire;
  }

  std::optional<Position> positionOf(const std::string& id) const {
    const auto found = std::ranges::find(m_section.positions, id, [](const auto& each) { return each.first; });
    return found == m_section.positions.end() ? std::nullopt : std::optional(found->second);
  }

  const DocumentBlock& m_section;
  std::string m_first;
  Endpoint m_firstIn;
  Endpoint m_firstOut;
  Endpoint m_secondIn;
  Endpoint m_secondOut;
};

}  // namespace

std::vector<Proposal> suggestion_sources::order(const SuggestionContext& context) {
  std::vector<Proposal> proposals;
  std::set<std::string> seen;  // an op of a block is in each of its instances
  const Graph& graph = context.analysis.graph();
  for (const Node& first : graph.nodes()) {
    const Node* second = onlyReader(graph, first);
    if (!second || !commute(graph, first, *second)) continue;
    const std::optional<WrittenOp> op = writtenOp(context.document, first);
    const std::optional<WrittenOp> reader = writtenOp(context.document, *second);
    if (!op || !reader || !op->isBeside(*reader) || !seen.insert(op->text()).second) continue;
    const Swap swap(*op, first, *reader, *second);
    if (!swap.isDirect()) continue;
    EditGroup edit = swap.edit();
    std::string label = op->block.empty() ? edit.label : fmt::format("{} of block {}", edit.label, op->block);
    proposals.push_back({.source = "order",
                         .node = first.owner,
                         .repair = {std::move(label), op->inPlace(std::move(edit))},
                         .caution = op->cautionWith("Mathematically equal; rounding may differ in the last bit.")});
  }
  return proposals;
}

}  // namespace fuseline
