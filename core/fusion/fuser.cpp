// OperationFuser: joint, then forward and backward rules.
//
// TransformerEngine's book is applied in order, each rule along the graph, and the first taker wins. From the whole
// book all legal fusions of a pass are collected, and the set of them that gains most is chosen (selection.h).
//
// An entry runs at the place of its last op. A fusion is legal if every outside producer runs before that place and
// every outside reader after it; as list order then respects all wires, no cycle can arise.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"

#include "core/fusion/hand_over.h"
#include "core/fusion/node_name.h"
#include "core/fusion/selection.h"
#include "core/fusion/sequential_border.h"
#include "core/fusion/step_operands.h"
#include "core/fusion/te_caveat.h"
#include "core/ops/external.h"
#include "core/quant/apply_recipe.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// "ForwardLinearBiasAdd(fc2, add)", with all ops: as runs name their steps.
std::string stepName(const Graph& graph, const FusionRule& rule, const std::vector<NodeId>& nodes) {
  std::vector<std::string_view> ids;
  for (const NodeId id : nodes) ids.push_back(graph.node(id).id);
  return fmt::format("{}({})", rule.name, fmt::join(ids, ", "));
}

bool takesPartInBackward(const Graph& graph, std::span<const NodeId> nodes) {
  return std::ranges::any_of(nodes, [&](NodeId id) { return graph.node(id).takesPartInBackward(); });
}

/// The list that one pass is building: which entry each op belongs to so far.
struct EntryList {
  explicit EntryList(const Graph& graph) : owner(graph.nodes().size(), -1) {}
  std::vector<FusedOperation> fusions;
  std::vector<int> owner;  // index into fusions, or -1

  bool isFree(NodeId id) const { return owner[static_cast<std::size_t>(id)] < 0; }

  const FusedOperation* entryOf(NodeId id) const {
    const int index = owner[static_cast<std::size_t>(id)];
    return index < 0 ? nullptr : &fusions[static_cast<std::size_t>(index)];
  }
  /// Where the op's entry runs.
  NodeId place(NodeId id) const {
    const FusedOperation* entry = entryOf(id);
    return entry ? entry->nodes.back() : id;
  }
  void add(FusedOperation fusion) {
    for (const NodeId id : fusion.nodes) owner[static_cast<std::size_t>(id)] = static_cast<int>(fusions.size());
    fusions.push_back(std::move(fusion));
  }
};

/// How far a chain can be followed from a start op.
struct Walk {
  std::vector<NodeId> nodes;
  std::vector<int> steps;
  std::size_t stepsMatched = 0;
  Outcome outcome = Outcome::Fused;  // Fused: the whole chain matched
  std::string explanation;
  std::vector<Repair> repairs;
};

/// For each op the rule of whose runs it is part, so that no two runs of one rule share a long tail.
using Claims = std::vector<const FusionRule*>;

class ChainWalker {
 public:
  ChainWalker(const Graph& graph, const FusionRule& rule, const EntryList& entries, const Claims& claims)
      : m_graph(graph), m_rule(rule), m_entries(entries), m_claims(claims) {}

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
  void take(NodeId id, std::size_t step) {
    m_walk.nodes.push_back(id);
    m_walk.steps.push_back(static_cast<int>(step));
  }

  bool walkStep(std::size_t step) {
    const ChainStep& wanted = m_rule.chain[step];
    const bool isFirst = step == 0;
    const bool isMet = isFirst || takeNext(step);
    if (!isMet) return wanted.isOptional() || fail(step);
    while (wanted.isRepeated() && !isNextClaimed(step) && isNextInTime(step) && takeNext(step)) {
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

  ValueId mainOutputId() const { return m_graph.node(m_walk.nodes.back()).outputs.front(); }
  const Value& mainOutput() const { return m_graph.value(mainOutputId()); }

  /// TransformerEngine's windows follow the main tensor only; ours also accept it as an extra operand of the same
  /// shape, but not as one value a row.
  bool accepts(const Use& use) const {
    if (use.slot == 0) return true;
    const auto shapeOf = [&](int slot) { return m_graph.spec(use.node, OperandKind::Input, slot).shape; };
    return m_rule.origin == RuleOrigin::Fuseline && shapeOf(use.slot) == shapeOf(0);
  }

  /// The tensors that a chain may go on with: the main one, and in our own rules the others as well.
  std::span<const ValueId> waysOn() const {
    const std::span<const ValueId> outputs = m_graph.node(m_walk.nodes.back()).outputs;
    return m_rule.origin == RuleOrigin::Te ? outputs.first(1) : outputs;
  }

  /// Inside the fusion a tensor is only for the next op, unless the kernel writes it for others, too.
  bool mayBeInside(const Value& value) const {
    return m_rule.writesBranches || (!value.isOutput && value.uses.size() == 1);
  }

  /// Over an extra output a chain goes on to the first reader of all outputs only: at the other end of a residual, say,
  /// it would come too late for what reads the main output.
  bool comesInTime(ValueId output, NodeId reader) const {
    const std::vector<ValueId>& outputs = m_graph.node(m_walk.nodes.back()).outputs;
    return output == outputs.front() || std::ranges::none_of(outputs, [&](ValueId other) {
             return std::ranges::any_of(m_graph.value(other).uses, [&](const Use& use) { return use.node < reader; });
           });
  }

  /// The first op on a way on that is wanted; -1: none.
  template <class IsWanted>
  NodeId nextOp(const IsWanted& isWanted) const {
    for (const ValueId output : waysOn()) {
      const Value& value = m_graph.value(output);
      for (const Use& use : value.uses)
        if (mayBeInside(value) && accepts(use) && comesInTime(output, use.node) && isWanted(use.node)) return use.node;
    }
    return -1;
  }

  bool isBeyondBorder(NodeId reader) const { return hasBorderBetween(m_graph, m_walk.nodes.back(), reader); }

  /// The op that the chain goes on to; -1: none fits.
  NodeId linkedReader(std::size_t step) const {
    return nextOp([&](NodeId id) { return !isBeyondBorder(id) && fitsStep(id, step); });
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
    const NodeId reader = nextOp([&](NodeId id) { return isBeyondBorder(id) && fits(id, step); });
    if (reader < 0) return false;
    m_walk.explanation = borderText(m_graph, m_walk.nodes.back(), reader);
    m_walk.repairs = {withoutBorders(m_graph, m_walk.nodes.back(), reader)};
    return true;
  }

  /// A whole chain that could have been longer says why it is not.
  void explainEnd() {
    const std::size_t last = m_rule.chain.size() - 1;
    const bool isFilled = m_walk.steps.back() == static_cast<int>(last);
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
    for (const ValueId output : waysOn())
      for (const Use& use : m_graph.value(output).uses)
        if (comesInTime(output, use.node) && fitsStep(use.node, step)) return m_graph.value(output);
    return mainOutput();
  }

  /// The next op fits, but an earlier fusion has it.
  bool failAtTaken(NodeId id) {
    const FusedOperation& entry = *m_entries.entryOf(id);
    m_walk.outcome = Outcome::TakenByAnother;
    m_walk.explanation = fmt::format("{} is already part of {} ({}), which comes earlier in the rule book.",
                                     nameOf(m_graph, id), entry.rule->name, idsOf(m_graph, entry.nodes));
    return false;
  }

  /// What an op that is not run reads is an output under the name of that op's input, and not of the tensor.
  std::string outsideText(const Value& value) const {
    const auto id = static_cast<ValueId>(&value - m_graph.values().data());
    const auto& outputs = m_graph.outputs();
    const auto cut = std::ranges::find_if(outputs, [&](const GraphOutput& output) {
      return output.value == id && output.name != value.name && isOfExternal(output.name);
    });
    if (cut == outputs.end()) return "the outside (it is a pipeline output)";
    return fmt::format("{}, which is not run (no fusion crosses it)", externalOf(cut->name));
  }

  std::string sharedText(const Value& value) const {
    std::vector<std::string> readers;
    for (const Use& use : value.uses) readers.push_back(m_graph.node(use.node).id);
    if (value.isOutput) readers.push_back(outsideText(value));
    const char* const reason =
        m_rule.pass == FusionPass::Backward
            ? "the gradients of its readers are added up in between. With a MakeExtraOutput for the branch the sum is "
              "an op that fusions know."
            : "the fusion needs it to have one reader, because it would no longer exist.";
    return fmt::format("{} is read by {}; {}", value.name, fmt::join(readers, " and "), reason);
  }

  /// An op that would fit reads an output that the rule does not follow; empty: there is none.
  std::string besideText(std::size_t step) const {
    for (const ValueId output : m_graph.node(m_walk.nodes.back()).outputs)
      for (const Use& use : m_graph.value(output).uses)
        if (output != mainOutputId() && fitsStep(use.node, step))
          return fmt::format("{} reads {}; as in TransformerEngine, the rule follows the main output, {}.",
                             nameOf(m_graph, use.node), m_graph.value(output).name, mainOutput().name);
    return {};
  }

  std::string brokenText(std::size_t step, const Value& value) const {
    if (std::string beside = besideText(step); m_rule.origin == RuleOrigin::Te && !beside.empty()) return beside;
    const std::string expected = m_rule.chain[step].description();
    const std::string after = nameOf(m_graph, m_walk.nodes.back());
    if (value.uses.empty())
      return fmt::format("After {} the pipeline ends; {} would have to come next.", after, expected);
    if (value.uses.size() > 1)
      return fmt::format("After {} the tensor branches to {} ops; {} would have to come next.", after,
                         value.uses.size(), expected);
    const Use& use = value.uses.front();
    const std::string& port = m_graph.node(use.node).operation->inputs[static_cast<std::size_t>(use.slot)].name;
    if (use.slot != 0 && fitsStep(use.node, step))
      return fmt::format("After {} comes {}, but on its input {}; the rule follows the main input x.", after,
                         nameOf(m_graph, use.node), port);
    return fmt::format("After {} comes {}; {} would have to come next.", after, nameOf(m_graph, use.node), expected);
  }

  const Graph& m_graph;
  const FusionRule& m_rule;
  const EntryList& m_entries;
  const Claims& m_claims;
  Walk m_walk;
  std::set<NodeId> m_outsiders;  // readers of what is inside that are not part of the run so far
};

/// Where fusions that want the same ops part: the places at which a long run may be cut.
class Crossings {
 public:
  explicit Crossings(std::size_t numNodes) : m_before(numNodes, kUnseen), m_after(numNodes, kUnseen) {}

  void add(const std::vector<NodeId>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      meet(m_before[static_cast<std::size_t>(nodes[i])], i > 0 ? nodes[i - 1] : kOutside);
      meet(m_after[static_cast<std::size_t>(nodes[i])], i + 1 < nodes.size() ? nodes[i + 1] : kOutside);
    }
  }
  /// Does one fusion come from another op to this one, or begin here, than others?
  bool isBefore(NodeId id) const { return m_before[static_cast<std::size_t>(id)] == kSeveral; }
  bool isAfter(NodeId id) const { return m_after[static_cast<std::size_t>(id)] == kSeveral; }

 private:
  static constexpr NodeId kOutside = -1;
  static constexpr NodeId kUnseen = -2;
  static constexpr NodeId kSeveral = -3;

  static void meet(NodeId& seen, NodeId neighbour) {
    if (seen == kUnseen) seen = neighbour;
    if (seen != neighbour) seen = kSeveral;
  }

  std::vector<NodeId> m_before;
  std::vector<NodeId> m_after;
};

/// At so many places a run is cut at most, from the front and from the back.
constexpr std::size_t kMostCuts = 4;

/// A fusion that the pass may choose.
struct Proposal {
  Attempt attempt;
  Gain gain;
  std::int64_t priority = 0;
  bool isPart = false;  // of a longer run that is proposed, too
  bool isTaken = false;
};

/// What is said of a chosen fusion to those that lose their ops to it.
struct Winner {
  Saving saving;
  std::shared_ptr<const MeasuredGain> measured;
  Gain gain;
};

/// One pass over the graph with one rule list.
class PassFuser {
 public:
  PassFuser(const Graph& graph, const FusionOptions& options, const SavedSet& unfusedSaved,
            const std::vector<InPlaceHazard>& hazards, EntryList entries, std::vector<Attempt>& attempts)
      : m_graph(graph),
        m_options(options),
        m_unfusedSaved(unfusedSaved),
        m_hazards(hazards),
        m_entries(std::move(entries)),
        m_claims(graph.nodes().size(), nullptr),
        m_next(graph.nodes().size(), -1),
        m_attempts(attempts) {}

  using Rules = std::vector<std::shared_ptr<const FusionRule>>;

  EntryList apply(const Rules& rules) && {
    if (m_options.book == RuleBook::Te)
      applyInOrder(rules);
    else
      applyBest(rules);
    return std::move(m_entries);
  }

 private:
  // In order: as TransformerEngine does it ------------------------------------------------------------------------

  void applyInOrder(const Rules& rules) {
    for (const auto& rule : rules) {
      if (rule->origin != RuleOrigin::Te) continue;
      for (NodeId start = 0; start < static_cast<NodeId>(m_graph.nodes().size()); ++start)
        if (rule->chain.front().matches(m_graph.node(start)) && !isInside(*rule, start)) applyAt(*rule, start);
    }
  }

  void applyAt(const FusionRule& rule, NodeId start) {
    Attempt attempt = attemptAt(rule, start);
    if (attempt.outcome == Outcome::Fused)
      m_entries.add({.rule = &rule, .nodes = attempt.nodes, .caveat = attempt.caveat});
    m_attempts.push_back(std::move(attempt));
  }

  Attempt attemptAt(const FusionRule& rule, NodeId start) const {
    Walk walk = ChainWalker(m_graph, rule, m_entries, m_claims).walk(start);
    Attempt attempt{.rule = &rule, .nodes = walk.nodes, .stepsMatched = walk.stepsMatched};
    attempt.outcome = walk.outcome;
    if (walk.outcome == Outcome::Fused) judge(matchOf(rule, walk.nodes, walk.steps), attempt);
    if (attempt.outcome == walk.outcome) addReason(std::move(walk), attempt);
    return attempt;
  }

  /// Why the chain ends where it does.
  static void addReason(Walk walk, Attempt& attempt) {
    const bool isSecond = !attempt.explanation.empty() && !walk.explanation.empty();
    attempt.explanation += (isSecond ? " " : "") + walk.explanation;
    attempt.repairs = std::move(walk.repairs);
  }

  // By gain: what is legal is not always faster -------------------------------------------------------------------

  /// A fusion moves its first ops to the place of its last, out of the way of others: what was refused for its place
  /// is asked again.
  void applyBest(const Rules& rules) {
    propose(rules);
    do choose();
    while (proposeLate());
    for (Proposal& late : m_late) reportLate(late);
  }

  void reportLate(Proposal& late) {
    if (late.attempt.outcome == Outcome::Fused) return reportLost(late);
    m_attempts.push_back(std::move(late.attempt));
  }

  void propose(const Rules& rules) {
    for (std::size_t rank = 0; rank < rules.size(); ++rank)
      for (NodeId start = 0; start < static_cast<NodeId>(m_graph.nodes().size()); ++start)
        if (rules[rank]->chain.front().matches(m_graph.node(start)) && !isClaimed(*rules[rank], start))
          proposeAt(*rules[rank], start, priorityOf(rank));
    proposeParts();
  }

  /// A rule outweighs a few of those behind it: each has a quarter of the weight of the one before.
  static std::int64_t priorityOf(std::size_t rank) {
    constexpr std::size_t kRanks = 20;
    return std::int64_t{1} << 2 * (kRanks - std::min(rank, kRanks));
  }

  bool isClaimed(const FusionRule& rule, NodeId id) const { return m_claims[static_cast<std::size_t>(id)] == &rule; }

  void proposeAt(const FusionRule& rule, NodeId start, std::int64_t priority) {
    Proposal proposal{.attempt = attemptAt(rule, start), .priority = priority};
    if (proposal.attempt.outcome != Outcome::Fused) return setAside(std::move(proposal));
    if (rule.hasRepeatedStep())
      for (const NodeId id : proposal.attempt.nodes) m_claims[static_cast<std::size_t>(id)] = &rule;
    add(std::move(proposal));
  }

  /// Where fusions part behind an op, as at a branch, the earlier way is chosen from first; the others come late.
  bool partsWays(const std::vector<NodeId>& nodes) const {
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i)
      if (const NodeId next = m_next[static_cast<std::size_t>(nodes[i])]; next >= 0 && next != nodes[i + 1])
        return true;
    return false;
  }

  void add(Proposal proposal) {
    const Attempt& attempt = proposal.attempt;
    if (partsWays(attempt.nodes)) return m_late.push_back(std::move(proposal));
    for (std::size_t i = 0; i + 1 < attempt.nodes.size(); ++i)
      m_next[static_cast<std::size_t>(attempt.nodes[i])] = attempt.nodes[i + 1];
    proposal.gain = gainOf(*attempt.saving, m_options.gains.decides ? attempt.measured.get() : nullptr);
    proposal.gain.priority = proposal.priority;
    if (isAsked(attempt)) proposal.gain.askedOps = static_cast<std::int64_t>(attempt.nodes.size());
    m_proposals.push_back(std::move(proposal));
  }

  void setAside(Proposal proposal) {
    const Attempt& attempt = proposal.attempt;
    const bool mayFitLater =
        attempt.outcome == Outcome::OutsideUse && attempt.stepsMatched == attempt.rule->chain.size();
    if (mayFitLater)
      m_late.push_back(std::move(proposal));
    else
      m_attempts.push_back(std::move(proposal.attempt));
  }

  /// Where fusions cross, a part of a run may leave the rest to another fusion and gain more together with it.
  void proposeParts() {
    Crossings crossings(m_graph.nodes().size());
    for (const Proposal& proposal : m_proposals) crossings.add(proposal.attempt.nodes);
    const std::size_t numWhole = m_proposals.size();
    for (std::size_t i = 0; i < numWhole; ++i)
      if (m_proposals[i].attempt.rule->hasRepeatedStep()) proposePartsOf(i, crossings);
  }

  void proposePartsOf(std::size_t index, const Crossings& crossings) {
    const std::vector<NodeId> nodes = m_proposals[index].attempt.nodes;
    std::vector<std::size_t> begins{0};
    std::vector<std::size_t> ends{nodes.size()};
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      if (crossings.isAfter(nodes[i - 1]) && begins.size() < kMostCuts) begins.push_back(i);
      if (crossings.isBefore(nodes[i]) && ends.size() < kMostCuts) ends.push_back(i);
    }
    for (const std::size_t begin : begins)
      for (const std::size_t end : ends)
        if (begin < end && end - begin < nodes.size()) proposePart(index, std::span(nodes).subspan(begin, end - begin));
  }

  void proposePart(std::size_t index, std::span<const NodeId> nodes) {
    const FusionRule& rule = *m_proposals[index].attempt.rule;
    std::optional<std::vector<int>> steps = chainSteps(rule, m_graph, nodes);
    if (!steps) return;
    Proposal part{.attempt = {.rule = &rule, .nodes = {nodes.begin(), nodes.end()}, .stepsMatched = rule.chain.size()},
                  .priority = m_proposals[index].priority,
                  .isPart = true};
    judge(matchOf(rule, part.attempt.nodes, std::move(*steps)), part.attempt);
    if (part.attempt.outcome == Outcome::Fused) add(std::move(part));
  }

  void choose() {
    std::vector<Candidate> candidates;
    for (const Proposal& proposal : m_proposals) candidates.push_back({proposal.attempt.nodes, proposal.gain});
    const std::vector<std::size_t> chosen = bestSet(candidates, m_graph.nodes().size(), decidingDevice());
    for (const std::size_t index : chosen) take(m_proposals[index]);
    for (Proposal& proposal : m_proposals)
      if (!proposal.isPart && !proposal.isTaken) reportLost(proposal);
    m_proposals.clear();
    std::ranges::fill(m_next, -1);
  }

  DeviceModel decidingDevice() const { return m_options.gains.decides ? m_options.gains.device : DeviceModel{}; }

  void take(Proposal& proposal) {
    m_entries.add({.rule = proposal.attempt.rule, .nodes = proposal.attempt.nodes, .caveat = proposal.attempt.caveat});
    m_winners.resize(m_entries.fusions.size());
    m_winners.back() = {*proposal.attempt.saving, proposal.attempt.measured, proposal.gain};
    m_attempts.push_back(std::move(proposal.attempt));
    proposal.isTaken = true;
  }

  void reportLost(Proposal& proposal) {
    Attempt& attempt = proposal.attempt;
    const std::vector<int> winners = entriesIn(attempt.nodes);
    if (winners.empty())
      refuse(attempt, Outcome::ConditionFailed, "It gains nothing: it is " + worthOf(attempt) + ".");
    else
      refuse(attempt, Outcome::TakenByAnother, lostText(proposal, winners));
    m_attempts.push_back(std::move(attempt));
  }

  std::vector<int> entriesIn(const std::vector<NodeId>& nodes) const {
    std::vector<int> entries;
    std::set<int> seen;
    for (const NodeId id : nodes) {
      const int entry = m_entries.owner[static_cast<std::size_t>(id)];
      if (entry >= 0 && seen.insert(entry).second) entries.push_back(entry);
    }
    return entries;
  }

  std::string lostText(const Proposal& proposal, const std::vector<int>& winners) const {
    std::vector<std::string> texts;
    for (const int winner : winners) {
      const FusedOperation& entry = m_entries.fusions[static_cast<std::size_t>(winner)];
      texts.push_back(fmt::format("{} ({}), which is {}", entry.rule->name, idsOf(m_graph, entry.nodes),
                                  worthOf(m_winners[static_cast<std::size_t>(winner)])));
    }
    return fmt::format("{} part of {}; this fusion is {}{}.", takenOps(proposal.attempt), fmt::join(texts, ", and of "),
                       worthOf(proposal.attempt), tieText(proposal, winners));
  }

  /// "fc1 is", "fc1 and act are": the ops that others have.
  std::string takenOps(const Attempt& attempt) const {
    std::vector<NodeId> taken;
    for (const NodeId id : attempt.nodes)
      if (!m_entries.isFree(id)) taken.push_back(id);
    return fmt::format("{} {}", idsOf(m_graph, taken), taken.size() == 1 ? "is" : "are");
  }

  /// Why one of two that gain the same was chosen.
  std::string tieText(const Proposal& proposal, const std::vector<int>& winners) const {
    Gain winning;
    for (const int winner : winners) winning += m_winners[static_cast<std::size_t>(winner)].gain;
    if (winning.askedOps > proposal.gain.askedOps) return ", but nobody asked for it by name";
    winning.priority = proposal.gain.priority;
    return winning == proposal.gain ? ", the same, but comes later in the rule book or the pipeline" : "";
  }

  std::string worthOf(const Attempt& attempt) const {
    return gainText(*attempt.saving, attempt.measured.get(), m_options.gains.device);
  }
  std::string worthOf(const Winner& winner) const {
    return gainText(winner.saving, winner.measured.get(), m_options.gains.device);
  }

  /// Moves what fits now to the proposals.
  bool proposeLate() {
    std::vector<Proposal> late = std::move(m_late);
    m_late.clear();
    for (Proposal& proposal : late) {
      Attempt again{.rule = proposal.attempt.rule,
                    .nodes = proposal.attempt.nodes,
                    .stepsMatched = proposal.attempt.stepsMatched};
      if (isFree(again))
        judge(matchOf(*again.rule, again.nodes, *chainSteps(*again.rule, m_graph, again.nodes)), again);
      const bool fits = isFree(again) && again.outcome == Outcome::Fused;
      if (isFree(again)) proposal.attempt = std::move(again);
      if (fits)
        add(std::move(proposal));
      else
        m_late.push_back(std::move(proposal));
    }
    return !m_proposals.empty();
  }

  bool isFree(const Attempt& attempt) const {
    return std::ranges::all_of(attempt.nodes, [&](NodeId id) { return m_entries.isFree(id); });
  }

  // Is a whole match legal? -----------------------------------------------------------------------------------------

  /// A long chain was matched from its head; its tails are no attempts of their own.
  bool isInside(const FusionRule& rule, NodeId start) const {
    const FusedOperation* entry = m_entries.entryOf(start);
    return entry && entry->rule == &rule && entry->nodes.front() != start;
  }

  Match matchOf(const FusionRule& rule, std::vector<NodeId> nodes, std::vector<int> steps) const {
    return {m_graph, rule, std::move(nodes), std::move(steps), m_options.target};
  }

  void judge(const Match& match, Attempt& attempt) const {
    attempt.outcome = Outcome::Fused;
    attempt.saving = savingOf(match);
    attempt.measured = measuredAt(match);
    if (refuseSwitchedOff(match, attempt) || refuseCondition(match, attempt) || refuseIdle(match, attempt) ||
        refuseQuantizer(match, attempt) || refuseDelayed(match, attempt) || refuseTaken(match, attempt) ||
        refuseSchedule(match, attempt) || refuseHardware(match, attempt) || refuseKernel(match, attempt) ||
        refuseUseless(match, attempt) || refuseSlower(attempt) || refuseUnasked(match, attempt))
      return;
    attempt.caveat = teCaveat(m_graph, match.rule, match.nodes, m_hazards);
    attempt.explanation = fmt::format("{} run as one{}.", idsOf(m_graph, match.nodes),
                                      attempt.caveat.empty() ? "" : "; " + attempt.caveat);
  }

  static bool refuse(Attempt& attempt, Outcome outcome, std::string explanation) {
    attempt.outcome = outcome;
    attempt.explanation = std::move(explanation);
    return true;
  }

  bool refuseSwitchedOff(const Match& match, Attempt& attempt) const {
    const std::string entry = switchFor(attempt, m_options.switches.without);
    if (entry.empty()) return false;
    return refuse(attempt, Outcome::SwitchedOff, fmt::format("{} is switched off by \"{}\".", match.rule.name, entry));
  }

  std::shared_ptr<const MeasuredGain> measuredAt(const Match& match) const {
    const auto& measured = m_options.gains.measured;
    if (measured.empty()) return nullptr;
    const auto found = measured.find(stepName(m_graph, match.rule, match.nodes));
    return found == measured.end() ? nullptr : found->second;
  }

  /// TransformerEngine measures nothing, and what a user asks for by name is done.
  bool refuseSlower(Attempt& attempt) const {
    const bool mayRefuse = m_options.book != RuleBook::Te && m_options.gains.decides;
    if (!mayRefuse || !attempt.measured || !attempt.measured->isSlower() || isAsked(attempt)) return false;
    return refuse(attempt, Outcome::MeasuredSlower,
                  fmt::format("It was {}. It is used when asked for.", worthOf(attempt)));
  }

  bool isAsked(const Attempt& attempt) const {
    const std::string& askedBy = attempt.rule->askedBy;
    const bool isAskedByOp = !askedBy.empty() && m_graph.node(attempt.nodes.front()).attributes.has(askedBy);
    return isAskedByOp || !switchFor(attempt, m_options.switches.with).empty();
  }

  /// The last question: what else is wrong with a rule is worth more to know than that nobody asked for it.
  bool refuseUnasked(const Match& match, Attempt& attempt) const {
    if (match.rule.price.empty() || isAsked(attempt)) return false;
    attempt.saving.reset();  // the traffic model does not know the price
    return refuse(attempt, Outcome::OnRequest,
                  fmt::format("It would keep {} less for backward. {} It is used when asked for.",
                              formatBytes(keptLess(match)), match.rule.price));
  }

  std::string switchFor(const Attempt& attempt, const std::vector<std::string>& entries) const {
    return fuseline::switchFor(m_graph, *attempt.rule, attempt.nodes, entries);
  }

  static bool refuseCondition(const Match& match, Attempt& attempt) {
    for (const Condition& condition : match.rule.conditions) {
      const Verdict verdict = condition.holds(match);
      if (verdict) continue;
      if (condition.repairs) attempt.repairs = condition.repairs(match);
      return refuse(attempt, Outcome::ConditionFailed, verdict.reason());
    }
    return false;
  }

  /// Backward fusions need every op to take part, and our own joint ones: a frozen op has saved nothing.
  bool refuseIdle(const Match& match, Attempt& attempt) const {
    if (match.rule.pass == FusionPass::Forward || mayHaveIdleOps(match)) return false;
    for (const NodeId id : match.nodes)
      if (!m_graph.node(id).takesPartInBackward())
        return refuse(attempt, Outcome::ConditionFailed,
                      fmt::format("{} needs no gradient, so it takes no part in backward.", nameOf(m_graph, id)));
    return false;
  }

  /// TransformerEngine does not ask which ops need a gradient; entries in which none does are not run backward.
  bool mayHaveIdleOps(const Match& match) const {
    if (match.rule.origin != RuleOrigin::Te) return false;
    return match.rule.pass == FusionPass::Joint ||
           (m_options.book == RuleBook::Te && takesPartInBackward(m_graph, match.nodes));
  }

  /// A recipe quantizes what a GEMM reads; inside a fusion there would be no such tensor.
  bool refuseQuantizer(const Match& match, Attempt& attempt) const {
    if (match.rule.quantizesInside) return false;
    for (const NodeId id : match.nodes)
      for (const TensorType type : {TensorType::Input, TensorType::GradOutput})
        if (quantizersOf(m_graph.node(id), type).any() && isMadeInside(match, id, type))
          return refuse(attempt, Outcome::ConditionFailed,
                        fmt::format("The recipe quantizes the {} of {} to {}, so it must stand in memory before the "
                                    "product; inside the fusion it would not exist.",
                                    roleName(type), nameOf(m_graph, id), formatText(id, type)));
    return false;
  }

  bool isMadeInside(const Match& match, NodeId id, TensorType type) const {
    const Node& node = m_graph.node(id);
    if (type == TensorType::Input)
      return match.rule.pass != FusionPass::Backward && contains(match, m_graph.value(node.inputs.front()).producer);
    const auto& uses = m_graph.value(node.outputs.front()).uses;
    return match.rule.pass != FusionPass::Forward && !match.rule.readsLastGradientInGemms &&
           std::ranges::any_of(uses, [&](const Use& use) { return contains(match, use.node); });
  }

  std::string_view formatText(NodeId id, TensorType type) const {
    const TensorQuantizers& quantizers = quantizersOf(m_graph.node(id), type);
    return formatName((quantizers.rowwise ? quantizers.rowwise : quantizers.columnwise)->format);
  }

  /// A gradient that waits is a step of its own; a kernel of several ops computes all of theirs at once.
  bool refuseDelayed(const Match& match, Attempt& attempt) const {
    if (match.rule.pass == FusionPass::Forward) return false;
    for (const NodeId id : match.nodes)
      if (m_graph.node(id).delayedNeeds().anyParameter())
        return refuse(
            attempt, Outcome::ConditionFailed,
            fmt::format("{} has delay_wgrad_compute on: its weight gradient comes after the rest of backward, "
                        "but the fusion would compute it in its place. Switch delay_wgrad_compute off for it.",
                        nameOf(m_graph, id)));
    return false;
  }

  bool refuseTaken(const Match& match, Attempt& attempt) const {
    for (const NodeId id : match.nodes)
      if (const FusedOperation* entry = m_entries.entryOf(id))
        return refuse(attempt, Outcome::TakenByAnother,
                      fmt::format("{} is already part of {} ({}), which comes earlier in the rule book.",
                                  m_graph.node(id).id, entry->rule->name, idsOf(m_graph, entry->nodes)));
    return false;
  }

  /// A chain follows wires, so that its ops are in the order of the graph.
  static bool contains(const Match& match, NodeId id) { return std::ranges::binary_search(match.nodes, id); }

  bool refuseSchedule(const Match& match, Attempt& attempt) const {
    const NodeId place = match.nodes.back();
    for (const NodeId id : match.nodes) {
      for (const ValueId input : m_graph.node(id).inputs) {
        const NodeId producer = m_graph.value(input).producer;
        if (producer >= 0 && !contains(match, producer) && m_entries.place(producer) >= place)
          return refuse(attempt, Outcome::OutsideUse,
                        fmt::format("{} needs the result of {}, which runs only after it.", m_graph.node(id).id,
                                    nameOf(m_graph, producer)));
      }
      for (const ValueId output : m_graph.node(id).outputs)
        if (refuseReaders(match, m_graph.value(output), attempt)) return true;
    }
    return false;
  }

  bool refuseReaders(const Match& match, const Value& value, Attempt& attempt) const {
    const bool isReadInside =
        std::ranges::any_of(value.uses, [&](const Use& use) { return contains(match, use.node); });
    if (isReadInside && !match.rule.writesBranches && (value.isOutput || value.uses.size() > 1))
      return refuse(attempt, Outcome::OutsideUse,
                    fmt::format("{} has several readers, one of them inside the fusion; their gradients would have to "
                                "be added in between.",
                                value.name));
    for (const Use& use : value.uses)
      if (!contains(match, use.node) && m_entries.place(use.node) <= match.nodes.back())
        return refuse(attempt, Outcome::OutsideUse,
                      fmt::format("{} reads {} before {} has run.", nameOf(m_graph, use.node), value.name,
                                  m_graph.node(match.nodes.back()).id));
    return false;
  }

  bool refuseHardware(const Match& match, Attempt& attempt) const {
    const std::optional<HardwareNeed>& need = match.rule.hardware;
    const std::optional<ComputeCapability>& device = match.target.capability;
    if (!need || (device && need->isMetBy(*device))) return false;
    return refuse(attempt, Outcome::NoKernel,
                  fmt::format("{} needs a GPU of {}, but the device {}.", match.rule.name, toString(*need),
                              device ? "has " + toString(*device) : "is no GPU"));
  }

  bool refuseKernel(const Match& match, Attempt& attempt) const {
    if (!m_options.capabilities) return false;
    for (const Phase phase : phasesOf(match.rule.pass)) {
      const Verdict verdict = m_options.capabilities({m_graph, match.rule.becomes, phase, match.nodes});
      if (!verdict) return refuse(attempt, Outcome::NoKernel, verdict.reason());
    }
    return false;
  }

  /// TransformerEngine fuses whatever fits its windows; our own chapter also wants a gain.
  static bool refuseUseless(const Match& match, Attempt& attempt) {
    const bool saves = attempt.saving->bytes > 0 || attempt.saving->launches > 0;
    if (saves || match.rule.origin == RuleOrigin::Te) return false;
    return refuse(attempt, Outcome::ConditionFailed, "There is nothing to save: at most one of these ops moves data.");
  }

  std::vector<Phase> phasesOf(FusionPass pass) const {
    switch (pass) {
      case FusionPass::Forward:
      case FusionPass::ForwardHandOver: return {Phase::Forward};
      case FusionPass::Backward:
      case FusionPass::BackwardHandOver: return {Phase::Backward};
      case FusionPass::Joint:
        if (m_graph.pass() != PassKind::Training) return {Phase::Forward};
        return {Phase::Forward, Phase::Backward};
    }
    return {};
  }

  Saving costOf(const FusedOperation& entry, Phase phase, const SavedSet& saved) const {
    const EntryOperands operands =
        phase == Phase::Forward ? forwardOperands(m_graph, entry, saved) : backwardOperands(m_graph, entry);
    return {.bytes = trafficBytes(m_graph, entry, operands), .launches = operands.isView() ? 0 : 1};
  }

  /// Of an op by itself. It is part of many attempts.
  const Saving& basicCost(NodeId id, Phase phase) const {
    std::vector<std::optional<Saving>>& costs = m_basicCosts[phase == Phase::Forward ? 0 : 1];
    if (costs.empty()) costs.resize(m_graph.nodes().size());
    std::optional<Saving>& cost = costs[static_cast<std::size_t>(id)];
    if (!cost) cost = costOf({.nodes = {id}}, phase, m_unfusedSaved);
    return *cost;
  }

  SavedSet keptBy(const FusedOperation& entry) const { return savedTensors(m_graph, {&entry, 1}); }

  SavedSet keptByMembers(const FusedOperation& fusion) const {
    SavedSet kept;
    for (const NodeId id : fusion.nodes)
      for (const ValueId value : keptBy({.nodes = {id}}).values) kept.values.insert(value);
    return kept;
  }

  /// Bytes that a joint fusion does not keep for backward, but its ops would.
  std::int64_t keptLess(const Match& match) const {
    const FusedOperation fusion{.rule = &match.rule, .nodes = match.nodes};
    const SavedSet kept = savedWith(fusion);
    std::int64_t bytes = 0;
    for (const ValueId value : keptByMembers(fusion).values)
      if (!kept.values.contains(value)) bytes += m_graph.value(value).spec.bytes();
    return bytes;
  }

  /// What is kept of the members' own tensors, once a joint fusion's choice has replaced the members' contexts.
  SavedSet savedWith(const FusedOperation& fusion) const {
    const SavedSet replaced = keptByMembers(fusion);
    SavedSet saved = keptBy(fusion);
    for (const NodeId id : fusion.nodes)
      for (const ValueId output : m_graph.node(id).outputs)
        if (m_unfusedSaved.values.contains(output) && !replaced.values.contains(output)) saved.values.insert(output);
    return saved;
  }

  Saving savingOf(const Match& match) const {
    const FusedOperation fusion{.rule = &match.rule, .nodes = match.nodes};
    const SavedSet ownSaved = fusion.rule->saves ? savedWith(fusion) : SavedSet{};
    const SavedSet& fusedSaved = fusion.rule->saves ? ownSaved : m_unfusedSaved;
    Saving saving;
    for (const Phase phase : phasesOf(match.rule.pass)) {
      for (const NodeId id : match.nodes) {
        const Saving& basic = basicCost(id, phase);
        saving.bytes += basic.bytes;
        saving.launches += basic.launches;
      }
      const Saving fused = costOf(fusion, phase, fusedSaved);
      saving.bytes -= fused.bytes;
      saving.launches -= fused.launches;
    }
    return saving;
  }

  const Graph& m_graph;
  const FusionOptions& m_options;
  const SavedSet& m_unfusedSaved;
  const std::vector<InPlaceHazard>& m_hazards;
  mutable std::array<std::vector<std::optional<Saving>>, 2> m_basicCosts;  // by phase and op
  EntryList m_entries;
  Claims m_claims;
  std::vector<NodeId> m_next;  // behind each op, where the proposals go on
  std::vector<Proposal> m_proposals;
  std::vector<Proposal> m_late;   // other fusions are in the way of their place
  std::vector<Winner> m_winners;  // by entry; empty where an earlier pass made it
  std::vector<Attempt>& m_attempts;
};

/// Fusions at the places of their last ops, basic ops in between.
std::vector<FusedOperation> toList(const Graph& graph, const EntryList& entries, bool backwardOnly) {
  std::vector<FusedOperation> list;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const FusedOperation* entry = entries.entryOf(id);
    const bool isRun = entry && (!backwardOnly || takesPartInBackward(graph, entry->nodes));
    if (isRun && entry->nodes.back() == id) list.push_back(*entry);
    if (!entry && (!backwardOnly || graph.node(id).takesPartInBackward())) list.push_back({.nodes = {id}});
  }
  return list;
}

Result<void> checkSwitches(const RuleCatalog& rules, const std::vector<std::string>& entries, std::string_view verb) {
  for (const std::string& entry : entries) {
    const std::string name = entry.substr(0, entry.find('@'));
    if (rules.find(name)) continue;
    std::vector<std::string> names;
    for (const FusionRule* rule : rules.all()) names.push_back(rule->name);
    return Error{.message = fmt::format("\"{}\" {} a rule that does not exist{} `fuseline rules` lists them.", entry,
                                        verb, didYouMean(nearest(name, names))),
                 .kind = ErrorKind::Usage};
  }
  return {};
}

}  // namespace

Verdict hasItsOp(const Graph& graph, const std::string& entry) {
  const auto at = entry.find('@');
  if (at == std::string::npos) return Verdict::yes();
  const std::string place = entry.substr(at + 1);
  const auto& nodes = graph.nodes();
  if (std::ranges::any_of(nodes, [&](const Node& node) { return node.isAt(place); })) return Verdict::yes();
  std::vector<std::string> ids;
  for (const Node& node : nodes) ids.insert(ids.end(), {node.id, node.owner});
  const std::string near = nearest(place, ids);
  return Verdict::no(fmt::format("\"{}\" switches nothing: expected an op of the pipeline after @, found {}{}.", entry,
                                 place, near.empty() ? "" : fmt::format("; did you mean {}?", near)));
}

std::string switchFor(const Graph& graph, const FusionRule& rule, std::span<const NodeId> nodes,
                      const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    const auto at = entry.find('@');
    if (entry.substr(0, at) != rule.name) continue;
    const auto isNamed = [&](NodeId id) { return graph.node(id).isAt(entry.substr(at + 1)); };
    if (at == std::string::npos || std::ranges::any_of(nodes, isNamed)) return entry;
  }
  return {};
}

std::string placeEntry(const Graph& graph, const Attempt& attempt) {
  return attempt.rule->name + "@" + graph.node(attempt.nodes.front()).id;
}

std::string requestFor(const Graph& graph, const Attempt& attempt) {
  if (attempt.outcome != Outcome::OnRequest && attempt.outcome != Outcome::MeasuredSlower) return {};
  return placeEntry(graph, attempt);
}

std::string shellExplanation(const Graph& graph, const Attempt& attempt) {
  const std::string request = requestFor(graph, attempt);
  return request.empty() ? attempt.explanation : attempt.explanation + " To use it: --with " + request + ".";
}

std::string_view phaseName(Phase phase) { return phase == Phase::Forward ? "forward" : "backward"; }

std::string_view outcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::Fused: return "fused";
    case Outcome::BrokenChain: return "broken chain";
    case Outcome::OutsideUse: return "outside use";
    case Outcome::ConditionFailed: return "condition failed";
    case Outcome::TakenByAnother: return "taken by another fusion";
    case Outcome::NoKernel: return "no kernel on this device";
    case Outcome::SwitchedOff: return "switched off";
    case Outcome::OnRequest: return "on request";
    case Outcome::MeasuredSlower: return "measured slower";
  }
  return "?";
}

bool gainsMore(const Attempt& a, const Attempt& b, const DeviceModel& device) {
  if (!a.saving || !b.saving) return a.saving && !b.saving;
  return exceeds(gainOf(*a.saving, a.measured.get()), gainOf(*b.saving, b.measured.get()), device);
}

const Attempt* attemptBehind(const FusionReport& report, const FusedOperation& entry) {
  const auto made = std::ranges::find_if(report.attempts, [&](const Attempt& attempt) {
    return attempt.outcome == Outcome::Fused && attempt.rule == entry.rule && attempt.nodes == entry.nodes;
  });
  return made == report.attempts.end() ? nullptr : &*made;
}

std::string FusedOperation::name(const Graph& graph) const {
  return isFused() ? rule->name : graph.node(nodes.front()).operation->name;
}

std::string FusedOperation::kernelName(const Graph& graph) const {
  return isFused() ? rule->becomes : graph.node(nodes.front()).operation->kernelName();
}

std::string FusedOperation::note(const Graph& graph) const {
  if (ranks > 1) return {};
  std::vector<std::string> notes;
  for (const NodeId id : nodes)
    if (std::string own = graph.node(id).note(); !own.empty()) notes.push_back(std::move(own));
  return fmt::format("{}", fmt::join(notes, "; "));
}

FusionReport unfused(const Graph& graph) {
  const EntryList none(graph);
  FusionReport report{.forward = toList(graph, none, false)};
  if (graph.pass() == PassKind::Training) report.backward = toList(graph, none, true);
  return report;
}

namespace {

/// Where an attempt stands in the report. Sorting these instead of the attempts moves each attempt only once.
struct Standing {
  bool isMiss = false;
  bool isPredicted = false;
  Gain gain;
  std::size_t rank = 0;  // of the rule
  NodeId start = -1;
  std::size_t index = 0;
};

/// What was fused along the rule book and the pipeline, then misses by gain.
bool standsBefore(const Standing& a, const Standing& b, const DeviceModel& device) {
  const auto along = [](const Standing& standing) { return std::tuple(standing.rank, standing.start, standing.index); };
  if (a.isMiss != b.isMiss) return b.isMiss;
  if (!a.isMiss) return along(a) < along(b);
  if (a.isPredicted != b.isPredicted) return a.isPredicted;
  if (exceeds(a.gain, b.gain, device)) return true;
  return !exceeds(b.gain, a.gain, device) && along(a) < along(b);
}

std::vector<Standing> standingsOf(const std::vector<Attempt>& attempts, const RuleCatalog& rules) {
  std::map<const FusionRule*, std::size_t> ranks;
  for (const FusionRule* rule : rules.all()) ranks.emplace(rule, ranks.size());
  std::vector<Standing> standings;
  standings.reserve(attempts.size());
  for (const Attempt& attempt : attempts)
    standings.push_back({.isMiss = attempt.outcome != Outcome::Fused,
                         .isPredicted = attempt.saving.has_value(),
                         .gain = attempt.saving ? gainOf(*attempt.saving, attempt.measured.get()) : Gain{},
                         .rank = ranks.at(attempt.rule),
                         .start = attempt.nodes.front(),
                         .index = standings.size()});
  return standings;
}

void sortAttempts(FusionReport& report, const RuleCatalog& rules) {
  std::vector<Standing> standings = standingsOf(report.attempts, rules);
  std::ranges::sort(standings, [&](const Standing& a, const Standing& b) { return standsBefore(a, b, report.device); });
  std::vector<Attempt> sorted;
  sorted.reserve(standings.size());
  for (const Standing& standing : standings) sorted.push_back(std::move(report.attempts[standing.index]));
  report.attempts = std::move(sorted);
}

}  // namespace

namespace {

using Rules = std::vector<std::shared_ptr<const FusionRule>>;

/// Our own joint fusions are about what forward keeps; those of TransformerEngine serve inference as well.
Rules jointRules(const RuleCatalog& catalog, bool isTraining) {
  Rules rules = catalog.rules(FusionPass::Joint);
  if (!isTraining) std::erase_if(rules, [](const auto& rule) { return rule->origin != RuleOrigin::Te; });
  return rules;
}

}  // namespace

Result<FusionReport> fuse(const Graph& graph, const FusionOptions& options) {
  const RuleCatalog& rules = options.rules ? *options.rules : builtinRules();
  const RuleSwitches& switches = options.switches;
  if (Result<void> off = checkSwitches(rules, switches.without, "switches off"); !off) return off.error();
  if (Result<void> on = checkSwitches(rules, switches.with, "asks for"); !on) return on.error();

  FusionReport report = unfused(graph);
  report.book = options.book;
  report.device = options.gains.device;
  const SavedSet saved = savedTensors(graph, report.backward);
  const bool isTraining = graph.pass() == PassKind::Training;
  const std::vector<InPlaceHazard> hazards =
      options.book == RuleBook::Te ? inPlaceHazards(graph) : std::vector<InPlaceHazard>();
  const auto apply = [&](EntryList entries, const Rules& some) {
    return PassFuser(graph, options, saved, hazards, std::move(entries), report.attempts).apply(some);
  };
  const auto run = [&](FusionPass pass, EntryList entries) { return apply(std::move(entries), rules.rules(pass)); };

  const EntryList joint = apply(EntryList(graph), jointRules(rules, isTraining));
  report.forward = toList(graph, run(FusionPass::Forward, joint), false);
  if (isTraining) report.backward = toList(graph, run(FusionPass::Backward, joint), true);
  addHandOvers(graph, options, rules, report);
  for (auto* list : {&report.forward, &report.backward})
    for (FusedOperation& entry : *list) entry.ranks = options.target.ranks;
  sortAttempts(report, rules);
  return report;
}

namespace {

/// Position of every op's entry in the list; -1 where it is missing. An op that stands twice is reported.
Verdict placesOf(const Graph& graph, const std::vector<FusedOperation>& list, std::vector<int>& places) {
  places.assign(graph.nodes().size(), -1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const NodeId id : list[i].nodes) {
      int& place = places[static_cast<std::size_t>(id)];
      if (place >= 0) return Verdict::no(fmt::format("{} stands in two entries.", nameOf(graph, id)));
      place = static_cast<int>(i);
    }
  }
  return Verdict::yes();
}

Verdict verifyOrder(const Graph& graph, const std::vector<int>& places) {
  for (const Value& value : graph.values()) {
    if (value.producer < 0) continue;
    const int from = places[static_cast<std::size_t>(value.producer)];
    for (const Use& use : value.uses) {
      const int to = places[static_cast<std::size_t>(use.node)];
      if (from >= 0 && to >= 0 && from > to)
        return Verdict::no(fmt::format("{} runs before {}, whose result it reads.", nameOf(graph, use.node),
                                       nameOf(graph, value.producer)));
    }
  }
  return Verdict::yes();
}

Verdict verifyList(const Graph& graph, const std::vector<FusedOperation>& list, Phase phase) {
  std::vector<int> places;
  if (Verdict once = placesOf(graph, list, places); !once) return once;
  for (NodeId id = 0; id < static_cast<NodeId>(places.size()); ++id) {
    const bool isWanted = phase == Phase::Forward || graph.node(id).takesPartInBackward();
    if (isWanted && places[static_cast<std::size_t>(id)] < 0)
      return Verdict::no(fmt::format("{} is missing from the {} list.", nameOf(graph, id), phaseName(phase)));
  }
  return verifyOrder(graph, places);
}

}  // namespace

Verdict verifyExpansion(const Graph& graph, const FusionReport& report) {
  if (Verdict forward = verifyList(graph, report.forward, Phase::Forward); !forward) return forward;
  return verifyList(graph, report.backward, Phase::Backward);
}

}  // namespace fuseline
