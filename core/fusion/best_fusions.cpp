// Proposes fusions everywhere, chooses, and asks again what was in the way of others (selection.h).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/best_fusions.h"

#include "core/fusion/selection.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace fuseline {

namespace {

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

/// Largest number of places at which a run is cut, from the front and from the back.
constexpr std::size_t kMostCuts = 4;

/// A fusion that the pass may choose.
struct FusionProposal {
  Attempt attempt;
  Gain gain;
  std::int64_t priority = 0;
  bool isPart = false;  // of a longer run that is proposed, too
  bool isTaken = false;
};

class BestFusions {
 public:
  BestFusions(const Graph& graph, const FusionOptions& options, const Legality& legality, EntryList& entries,
              std::vector<Attempt>& attempts)
      : m_graph(graph),
        m_options(options),
        m_legality(legality),
        m_entries(entries),
        m_claims(graph.nodes().size(), nullptr),
        m_next(graph.nodes().size(), -1),
        m_attempts(attempts) {}

  /// A fusion moves its first ops to the place of its last, out of the way of others: what was refused for its place
  /// is asked again.
  void apply(const Rules& rules) {
    propose(rules);
    do choose();
    while (proposeLate());
    for (FusionProposal& late : m_late) reportLate(late);
  }

 private:
  void reportLate(FusionProposal& late) {
    if (late.attempt.outcome == Outcome::Fused) return reportLost(late);
    m_attempts.push_back(std::move(late.attempt));
  }

  void propose(const Rules& rules) {
    for (std::size_t rank = 0; rank < rules.size(); ++rank, m_mostOps = kAnyLength)
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
    FusionProposal proposal{.attempt = m_legality.tryFrom(start, rule, m_entries, m_claims, m_mostOps),
                            .priority = priority};
    if (proposal.attempt.outcome != Outcome::Fused && shortensRuns(proposal.attempt))
      proposal.attempt = m_legality.tryFrom(start, rule, m_entries, m_claims, m_mostOps);
    if (proposal.attempt.outcome != Outcome::Fused) return setAside(std::move(proposal));
    if (rule.hasRepeatedStep())
      for (const NodeId id : proposal.attempt.nodes) m_claims[static_cast<std::size_t>(id)] = &rule;
    add(std::move(proposal));
  }

  /// A long run that is refused is not tried again from each of its ops: the work would grow with its square.
  bool shortensRuns(const Attempt& refused) {
    constexpr std::size_t kLongRun = 256;
    if (refused.nodes.size() <= kLongRun || m_mostOps == kLongRun) return false;
    m_mostOps = kLongRun;
    return true;
  }

  /// Where fusions part behind an op, as at a branch, the earlier way is chosen from first; the others come late.
  bool partsWays(const std::vector<NodeId>& nodes) const {
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i)
      if (const NodeId next = m_next[static_cast<std::size_t>(nodes[i])]; next >= 0 && next != nodes[i + 1])
        return true;
    return false;
  }

  void add(FusionProposal proposal) {
    const Attempt& attempt = proposal.attempt;
    if (partsWays(attempt.nodes)) return m_late.push_back(std::move(proposal));
    for (std::size_t i = 0; i + 1 < attempt.nodes.size(); ++i)
      m_next[static_cast<std::size_t>(attempt.nodes[i])] = attempt.nodes[i + 1];
    proposal.gain = gainOf(*attempt.saving, m_options.gains.decides ? attempt.measured.get() : nullptr);
    // The order of the rules decides between equals; a fusion of this project that saves nothing gains nothing.
    const bool gains = proposal.gain != Gain() || attempt.rule->origin == RuleOrigin::Te;
    proposal.gain.priority = gains ? proposal.priority : 0;
    if (isAsked(m_graph, m_options, attempt)) proposal.gain.askedOps = static_cast<std::int64_t>(attempt.nodes.size());
    m_proposals.push_back(std::move(proposal));
  }

  void setAside(FusionProposal proposal) {
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
    for (const FusionProposal& proposal : m_proposals) crossings.add(proposal.attempt.nodes);
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
    FusionProposal part{.attempt = m_legality.tryOn(rule, {nodes.begin(), nodes.end()}, std::move(*steps), m_entries),
                        .priority = m_proposals[index].priority,
                        .isPart = true};
    if (part.attempt.outcome == Outcome::Fused) add(std::move(part));
  }

  void choose() {
    std::vector<Candidate> candidates;
    for (const FusionProposal& proposal : m_proposals) candidates.push_back({proposal.attempt.nodes, proposal.gain});
    const std::vector<std::size_t> chosen = bestSet(candidates, m_graph.nodes().size(), decidingDevice());
    for (const std::size_t index : chosen) take(m_proposals[index]);
    for (FusionProposal& proposal : m_proposals)
      if (!proposal.isPart && !proposal.isTaken) reportLost(proposal);
    m_proposals.clear();
    std::ranges::fill(m_next, -1);
  }

  DeviceModel decidingDevice() const { return m_options.gains.decides ? m_options.gains.device : DeviceModel{}; }

  void take(FusionProposal& proposal) {
    m_entries.add({.rule = proposal.attempt.rule, .nodes = proposal.attempt.nodes, .caveat = proposal.attempt.caveat});
    m_attempts.push_back(std::move(proposal.attempt));
    proposal.isTaken = true;
  }

  void reportLost(FusionProposal& proposal) {
    const bool isTaken = !isFree(proposal.attempt);
    proposal.attempt.outcome = isTaken ? Outcome::TakenByAnother : Outcome::ConditionFailed;
    proposal.attempt.explanation = "It would save neither traffic nor time.";  // explainLost() names the other fusions
    m_attempts.push_back(std::move(proposal.attempt));
  }

  /// Moves what fits now to the proposals.
  bool proposeLate() {
    std::vector<FusionProposal> late = std::move(m_late);
    m_late.clear();
    for (FusionProposal& proposal : late) {
      const bool fits = isFree(proposal.attempt) && tryAgain(proposal);
      if (fits)
        add(std::move(proposal));
      else
        m_late.push_back(std::move(proposal));
    }
    return !m_proposals.empty();
  }

  bool tryAgain(FusionProposal& proposal) const {
    const FusionRule& rule = *proposal.attempt.rule;
    std::vector<NodeId> nodes = proposal.attempt.nodes;
    std::vector<int> steps = *chainSteps(rule, m_graph, nodes);
    proposal.attempt = m_legality.tryOn(rule, std::move(nodes), std::move(steps), m_entries);
    return proposal.attempt.outcome == Outcome::Fused;
  }

  bool isFree(const Attempt& attempt) const {
    return std::ranges::all_of(attempt.nodes, [&](NodeId id) { return m_entries.isFree(id); });
  }

  const Graph& m_graph;
  const FusionOptions& m_options;
  const Legality& m_legality;
  EntryList& m_entries;
  Claims m_claims;
  std::size_t m_mostOps = kAnyLength;  // of the runs of a rule
  std::vector<NodeId> m_next;          // behind each op, where the proposals go on
  std::vector<FusionProposal> m_proposals;
  std::vector<FusionProposal> m_late;  // other fusions are in the way of their place
  std::vector<Attempt>& m_attempts;
};

}  // namespace

void fuseBest(const Graph& graph, const FusionOptions& options, const Legality& legality, const Rules& rules,
              EntryList& entries, std::vector<Attempt>& attempts) {
  BestFusions(graph, options, legality, entries, attempts).apply(rules);
}

}  // namespace fuseline
