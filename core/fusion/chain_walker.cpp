// Says how far a rule's chain goes on from an op, and why it ends there.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/chain_walker.h"

#include "core/fusion/node_name.h"
#include "core/fusion/sequential_border.h"
#include "core/ops/external.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

class ChainWalker {
 public:
  ChainWalker(const Graph& graph, const FusionRule& rule, const EntryList& entries, const Claims& claims,
              std::size_t mostOps)
      : m_graph(graph),
        m_mostOps(mostOps),
        m_rule(rule),
        m_entries(entries),
        m_claims(claims),
        m_hasBranches(std::ranges::any_of(rule.chain, [](const ChainStep& step) { return !step.follows.empty(); })) {}

  /// Precondition: the first step matches `start`.
  Walk walk(NodeId start) {
    take(start, 0);
    for (std::size_t step = 0; step < m_rule.chain.size(); ++step) {
      if (!walkStep(step)) return std::move(m_walk);
      m_walk.stepsMatched = step + 1;
    }
    explainEnd();
    return std::move(m_walk);
  }

 private:
  /// Keeps the ops in the order of the graph: those of a branch may come before the last one.
  void take(NodeId id, std::size_t step) {
    const auto place = std::ranges::upper_bound(m_walk.nodes, id) - m_walk.nodes.begin();
    m_walk.nodes.insert(m_walk.nodes.begin() + place, id);
    m_walk.steps.insert(m_walk.steps.begin() + place, static_cast<int>(step));
  }

  /// The op that a step follows. Only chains that branch name it, and those are short.
  NodeId originOf(std::size_t step) const {
    const std::string& role = m_rule.chain[step].follows;
    if (role.empty()) return m_walk.nodes.back();
    for (std::size_t i = 0; i < m_walk.nodes.size(); ++i)
      if (m_rule.chain[static_cast<std::size_t>(m_walk.steps[i])].role == role) return m_walk.nodes[i];
    return m_walk.nodes.back();
  }

  bool walkStep(std::size_t step) {
    const ChainStep& wanted = m_rule.chain[step];
    const bool isFirst = step == 0;
    const bool isMet = isFirst || takeNext(step);
    if (!isMet) return wanted.isOptional() || fail(step);
    while (wanted.isRepeated() && m_walk.nodes.size() < m_mostOps && !isNextClaimed(step) && isNextInTime(step) &&
           takeNext(step)) {
    }
    return true;
  }

  bool fitsStep(NodeId id, std::size_t step) const {
    return m_rule.chain[step].matches(m_graph.node(id), m_graph.node(m_walk.nodes.front()));
  }

  bool isNextClaimed(std::size_t step) const {
    const NodeId next = linkedReader(step);
    return next >= 0 && m_claims[static_cast<std::size_t>(next)] == &m_rule;
  }

  /// A run ends where it would come too late for those that read its branches.
  bool isNextInTime(std::size_t step) const {
    const NodeId next = linkedReader(step);
    return m_outsiders.empty() || next <= *m_outsiders.begin();
  }

  void noteOutsiders(NodeId next) {
    for (const ValueId output : m_graph.node(m_walk.nodes.back()).outputs)
      for (const Use& use : m_graph.value(output).uses) m_outsiders.insert(use.node);
    m_outsiders.erase(next);
  }

  bool takeNext(std::size_t step) {
    const NodeId next = linkedReader(step);
    const bool isFree = !m_rule.chain[step].isRepeated() || (next >= 0 && !m_entries.entryOf(next));
    if (next < 0 || !isFree) return false;
    if (m_rule.writesBranches) noteOutsiders(next);
    take(next, step);
    return true;
  }

  ValueId mainOutputId(NodeId from) const { return m_graph.node(from).outputs.front(); }
  const Value& mainOutput(NodeId from) const { return m_graph.value(mainOutputId(from)); }

  /// TransformerEngine's windows follow the main tensor only; ours also accept it as an extra operand of the same
  /// shape, but not as one value a row.
  bool accepts(const Use& use) const {
    if (use.slot == 0) return true;
    const auto shapeOf = [&](int slot) { return m_graph.spec(use.node, OperandKind::Input, slot).shape; };
    return m_rule.origin == RuleOrigin::Fuseline && shapeOf(use.slot) == shapeOf(0);
  }

  /// The tensors that a chain may go on with: the main one, and in our own rules the others as well.
  std::span<const ValueId> waysOn(NodeId from) const {
    const std::span<const ValueId> outputs = m_graph.node(from).outputs;
    return m_rule.origin == RuleOrigin::Te ? outputs.first(1) : outputs;
  }

  /// Inside the fusion a tensor is only for the next op, unless the kernel writes it for others, too.
  bool mayBeInside(const Value& value) const {
    return m_rule.writesBranches || (!value.isOutput && value.uses.size() == 1);
  }

  /// Over an extra output a chain goes on to the first reader of all outputs only: at the other end of a residual, say,
  /// it would come too late for what reads the main output.
  bool comesInTime(NodeId from, ValueId output, NodeId reader) const {
    const std::vector<ValueId>& outputs = m_graph.node(from).outputs;
    return output == outputs.front() || m_hasBranches || std::ranges::none_of(outputs, [&](ValueId other) {
             return std::ranges::any_of(m_graph.value(other).uses, [&](const Use& use) { return use.node < reader; });
           });
  }

  /// The first op on a way on that is wanted; -1: none.
  template <class IsWanted>
  NodeId nextOp(NodeId from, const IsWanted& isWanted) const {
    for (const ValueId output : waysOn(from)) {
      const Value& value = m_graph.value(output);
      for (const Use& use : value.uses)
        if (mayBeInside(value) && accepts(use) && comesInTime(from, output, use.node) && isWanted(use.node))
          return use.node;
    }
    return -1;
  }

  bool isBeyondBorder(NodeId from, NodeId reader) const { return hasBorderBetween(m_graph, from, reader); }
  bool isTaken(NodeId id) const { return std::ranges::binary_search(m_walk.nodes, id); }

  /// The op that the chain goes on to; -1: none fits.
  NodeId linkedReader(std::size_t step) const {
    const NodeId from = originOf(step);
    return nextOp(from, [&](NodeId id) { return !isBeyondBorder(from, id) && !isTaken(id) && fitsStep(id, step); });
  }

  /// Does the op fit the step, or one before it that may be left out?
  bool fits(NodeId id, std::size_t step) const {
    while (!fitsStep(id, step)) {
      if (step == 0 || !m_rule.chain[step - 1].isOptional()) return false;
      --step;
    }
    return true;
  }

  /// The chain would go on, if the border of a nested Sequential were not in between.
  bool endAtBorder(std::size_t step) {
    const NodeId from = originOf(step);
    const NodeId reader = nextOp(from, [&](NodeId id) { return isBeyondBorder(from, id) && fits(id, step); });
    if (reader < 0) return false;
    m_walk.explanation = borderText(m_graph, from, reader);
    m_walk.repairs = {withoutBorders(m_graph, from, reader)};
    return true;
  }

  /// A whole chain that could have been longer says why it is not.
  void explainEnd() {
    const std::size_t last = m_rule.chain.size() - 1;
    const bool isFilled = std::ranges::find(m_walk.steps, static_cast<int>(last)) != m_walk.steps.end();
    if (m_rule.chain[last].isRepeated() || !isFilled) endAtBorder(last);
  }

  bool fail(std::size_t step) {
    m_walk.stepsMatched = step;
    if (const NodeId taken = linkedReader(step); taken >= 0) return failAtTaken(taken);
    m_walk.outcome = Outcome::BrokenChain;
    if (endAtBorder(step)) return false;
    const Value& value = likeliestWayOn(step);
    const bool isOutsideUse = !mayBeInside(value) &&
                              std::ranges::any_of(value.uses, [&](const Use& use) { return fitsStep(use.node, step); });
    m_walk.outcome = isOutsideUse ? Outcome::OutsideUse : Outcome::BrokenChain;
    m_walk.explanation = isOutsideUse ? sharedText(value) : brokenText(step, value);
    return false;
  }

  /// Read by an op that would fit, or else the main output.
  const Value& likeliestWayOn(std::size_t step) const {
    const NodeId from = originOf(step);
    for (const ValueId output : waysOn(from))
      for (const Use& use : m_graph.value(output).uses)
        if (comesInTime(from, output, use.node) && fitsStep(use.node, step)) return m_graph.value(output);
    return mainOutput(from);
  }

  /// The next op fits, but an earlier fusion has it.
  bool failAtTaken(NodeId id) {
    const FusedOperation& entry = *m_entries.entryOf(id);
    m_walk.outcome = Outcome::TakenByAnother;
    m_walk.explanation = fmt::format("{} is already part of {} ({}), which comes earlier in the rule set.",
                                     nameOf(m_graph, id), entry.rule->name, idsOf(m_graph, entry.nodes));
    return false;
  }

  /// An input of an op that is not run is an output under the name of that input, not of the tensor.
  std::string outsideText(const Value& value) const {
    const auto id = static_cast<ValueId>(&value - m_graph.values().data());
    const auto& outputs = m_graph.outputs();
    const auto cut = std::ranges::find_if(outputs, [&](const GraphOutput& output) {
      return output.value == id && output.name != value.name && isOfExternal(output.name);
    });
    if (cut == outputs.end()) return "the outside (it is a pipeline output)";
    return fmt::format("{}, which is not executed (no fusion crosses it)", externalOf(cut->name));
  }

  std::string sharedText(const Value& value) const {
    std::vector<std::string> readers;
    for (const Use& use : value.uses) readers.push_back(m_graph.node(use.node).id);
    if (value.isOutput) readers.push_back(outsideText(value));
    const char* const reason = m_rule.pass == FusionPass::Backward
                                   ? "the gradients of its consumers are summed between these ops. Insert "
                                     "MakeExtraOutput at the branch so that the sum can be fused."
                                   : "a fused kernel would not write it, so the fusion needs a single consumer.";
    return fmt::format("{} is consumed by {}; {}", value.name, fmt::join(readers, " and "), reason);
  }

  /// An op that would fit reads an output that the rule does not follow; empty: there is none.
  std::string besideText(std::size_t step) const {
    const NodeId from = originOf(step);
    for (const ValueId output : m_graph.node(from).outputs)
      for (const Use& use : m_graph.value(output).uses)
        if (output != mainOutputId(from) && fitsStep(use.node, step))
          return fmt::format("{} consumes {}; as in TransformerEngine, the rule follows the main output, {}.",
                             nameOf(m_graph, use.node), m_graph.value(output).name, mainOutput(from).name);
    return {};
  }

  std::string brokenText(std::size_t step, const Value& value) const {
    if (std::string beside = besideText(step); m_rule.origin == RuleOrigin::Te && !beside.empty()) return beside;
    const std::string expected = m_rule.chain[step].description();
    const std::string after = nameOf(m_graph, originOf(step));
    if (value.uses.empty()) return fmt::format("The pipeline ends after {}; expected {} next.", after, expected);
    if (value.uses.size() > 1)
      return fmt::format("The output of {} has {} consumers; expected only {}.", after, value.uses.size(), expected);
    const Use& use = value.uses.front();
    const std::string& port = m_graph.node(use.node).operation->inputs[static_cast<std::size_t>(use.slot)].name;
    if (use.slot != 0 && fitsStep(use.node, step))
      return fmt::format("{} is followed by {}, but feeds its input {}, and the rule follows only the main input x.",
                         after, nameOf(m_graph, use.node), port);
    return fmt::format("{} is followed by {}, not {}.", after, nameOf(m_graph, use.node), expected);
  }

  const Graph& m_graph;
  std::size_t m_mostOps;
  const FusionRule& m_rule;
  const EntryList& m_entries;
  const Claims& m_claims;
  bool m_hasBranches;
  Walk m_walk;
  std::set<NodeId> m_outsiders;  // readers of what is inside that are not part of the run so far
};

}  // namespace

Walk walkChain(const Graph& graph, const FusionRule& rule, const EntryList& entries, const Claims& claims, NodeId start,
               std::size_t mostOps) {
  return ChainWalker(graph, rule, entries, claims, mostOps).walk(start);
}

}  // namespace fuseline
