// Reshapes between ops that would be fused without them, such as the sum of a residual and a norm. Ops that compute
// each element for itself are of any shape, so their inputs can be reshaped as well as their outputs.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions/section_edits.h"
#include "core/plan/suggestions/sources.h"
#include "core/plan/suggestions/written_op.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Two tensors or more become one, each element for itself. Ops of one input are swapped by order.cpp.
bool joinsOfAnyShape(const Graph& graph, const Node& node) {
  const FusibleOperation& operation = *node.operation;
  const bool isPlain = operation.isElementwise() && operation.parameters.empty() && !operation.settle;
  if (!isPlain || node.inputs.size() < 2 || node.outputs.size() != 1) return false;
  const Shape& shape = graph.value(node.outputs.front()).spec.shape;
  return std::ranges::all_of(node.inputs, [&](ValueId id) { return graph.value(id).spec.shape == shape; });
}

Endpoint mainOutput(const WrittenOp& op, const Node& node) { return {op.id, node.operation->outputs.front().name}; }

/// The shape of a value, written so that the first axis may be of any extent.
Json shapeText(const Graph& graph, ValueId value) {
  Json shape = Json::array();
  for (const std::int64_t extent : graph.value(value).spec.shape) shape.push_back(extent);
  if (!shape.empty()) shape.front() = -1;
  return shape;
}

struct Pair {
  WrittenOp reshape;
  const Node& reshapeNode;
  WrittenOp join;
  const Node& joinNode;

  Endpoint reshapeIn() const { return {reshape.id, reshapeNode.operation->inputs.front().name}; }
  Endpoint reshapeOut() const { return mainOutput(reshape, reshapeNode); }
  Endpoint joinOut() const { return mainOutput(join, joinNode); }
  Endpoint joinIn(std::size_t slot) const { return {join.id, joinNode.operation->inputs[slot].name}; }
};

/// join -> reshape: the inputs of the join are reshaped instead of its output.
std::optional<EditGroup> moveBefore(const Pair& pair) {
  SectionEdits edits(*pair.reshape.section);
  const auto inner = edits.wireTo(pair.reshapeIn());
  if (!inner || inner->from != pair.joinOut() || edits.numReaders(pair.joinOut()) != 1) return std::nullopt;
  for (std::size_t slot = 0; slot < pair.joinNode.inputs.size(); ++slot)
    if (!edits.wireTo(pair.joinIn(slot))) return std::nullopt;
  edits.remove(*inner);
  edits.readInstead(pair.reshapeOut(), pair.joinOut());
  edits.lead(pair.joinIn(0), pair.reshapeIn(), pair.reshapeOut());
  for (std::size_t slot = 1; slot < pair.joinNode.inputs.size(); ++slot) {
    const std::string id = edits.addLike(pair.reshape.id);
    edits.lead(pair.joinIn(slot), {id, pair.reshapeIn().port}, {id, pair.reshapeOut().port});
  }
  return edits.group(fmt::format("Move {} before {}", pair.reshape.id, pair.join.id));
}

/// reshape -> join: the output of the join is reshaped, and its other inputs get the shape from before.
std::optional<EditGroup> moveBehind(const Graph& graph, const Pair& pair) {
  SectionEdits edits(*pair.reshape.section);
  const auto outer = edits.wireTo(pair.reshapeIn());
  const auto inner = edits.wireTo(pair.joinIn(0));
  if (!outer || !inner || inner->from != pair.reshapeOut() || edits.numReaders(pair.reshapeOut()) != 1)
    return std::nullopt;
  for (std::size_t slot = 1; slot < pair.joinNode.inputs.size(); ++slot)
    if (!edits.wireTo(pair.joinIn(slot))) return std::nullopt;
  edits.remove(*outer);
  edits.remove(*inner);
  edits.readInstead(pair.joinOut(), pair.reshapeOut());
  edits.add({outer->from, pair.joinIn(0)});
  edits.add({pair.joinOut(), pair.reshapeIn()});
  for (std::size_t slot = 1; slot < pair.joinNode.inputs.size(); ++slot) {
    const std::string id =
        edits.addLike(pair.reshape.id, {{"shape", shapeText(graph, pair.reshapeNode.inputs.front())}});
    edits.lead(pair.joinIn(slot), {id, pair.reshapeIn().port}, {id, pair.reshapeOut().port});
  }
  return edits.group(fmt::format("Move {} after {}", pair.reshape.id, pair.join.id));
}

class Moves {
 public:
  explicit Moves(const SuggestionContext& context) : m_context(context), m_graph(context.analysis.graph()) {}

  std::vector<Proposal> all() {
    for (const Node& node : m_graph.nodes())
      if (node.operation->name == "Reshape") propose(node);
    return std::move(m_proposals);
  }

 private:
  void propose(const Node& reshape) {
    const Value& x = m_graph.value(reshape.inputs.front());
    const Value& y = m_graph.value(reshape.outputs.front());
    if (x.producer >= 0) add(reshape, m_graph.node(x.producer), [](const Pair& pair) { return moveBefore(pair); });
    if (y.uses.size() == 1 && y.uses.front().slot == 0)
      add(reshape, m_graph.node(y.uses.front().node), [this](const Pair& pair) { return moveBehind(m_graph, pair); });
  }

  template <class Move>
  void add(const Node& reshape, const Node& join, const Move& move) {
    if (!joinsOfAnyShape(m_graph, join)) return;
    const std::optional<WrittenOp> op = writtenOp(m_context.document, reshape);
    const std::optional<WrittenOp> other = writtenOp(m_context.document, join);
    if (!op || !other || !op->isBeside(*other)) return;
    std::optional<EditGroup> edit = move(Pair{*op, reshape, *other, join});
    if (!edit) return;
    std::string label = op->block.empty() ? edit->label : fmt::format("{} of block {}", edit->label, op->block);
    if (!m_seen.insert(label).second) return;
    m_proposals.push_back({.source = "reshapes",
                           .node = reshape.owner,
                           .repair = {std::move(label), op->inPlace(std::move(*edit))},
                           .caution = op->cautionWith("")});
  }

  const SuggestionContext& m_context;
  const Graph& m_graph;
  std::set<std::string> m_seen;  // an op of a block is in each of its instances
  std::vector<Proposal> m_proposals;
};

}  // namespace

std::vector<Proposal> suggestion_sources::reshapes(const SuggestionContext& context) { return Moves(context).all(); }

}  // namespace fuseline
