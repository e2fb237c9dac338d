// Three zones lie around the changed ops. The report of the core is that of the later graph. In the ring around it, the
// earlier and the later report must be the same: then the edit does not reach farther. The window around both is fused.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/incremental/spliced_report.h"

#include "core/graph/graph_match.h"
#include "core/graph/graph_window.h"
#include "core/plan/savings/planned_savings.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

/// More than any rule looks beyond the ops of its chain.
constexpr int kHops = 4;
/// Fusing a window of this size takes as long as most pipelines.
constexpr std::size_t kMostNodes = 400;

/// The same part of both graphs; ascending.
struct Zone {
  std::vector<NodeId> earlier;
  std::vector<NodeId> later;
};

void makeAscending(std::vector<NodeId>& nodes) {
  std::ranges::sort(nodes);
  nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
}

std::vector<bool> flagsOf(const std::vector<NodeId>& nodes, std::size_t numNodes) {
  std::vector<bool> flags(numNodes, false);
  for (const NodeId id : nodes) flags[toIndex(id)] = true;
  return flags;
}

bool touches(std::span<const NodeId> nodes, const std::vector<bool>& flags) {
  return std::ranges::any_of(nodes, [&](NodeId id) { return flags[toIndex(id)]; });
}

bool isSame(const Attempt& a, const Attempt& b) {
  return a.rule == b.rule && a.nodes == b.nodes && a.stepsMatched == b.stepsMatched && a.outcome == b.outcome &&
         a.explanation == b.explanation && a.caveat == b.caveat && a.saving == b.saving && a.measured == b.measured &&
         std::ranges::equal(a.repairs, b.repairs, {}, &Repair::label, &Repair::label);
}

bool isSame(const FusedOperation& a, const FusedOperation& b) {
  return a.rule == b.rule && a.nodes == b.nodes && a.caveat == b.caveat;
}

template <class Item>
Item mapped(Item item, const std::vector<NodeId>& to) {
  for (NodeId& id : item.nodes) id = to[toIndex(id)];
  return item;
}

class Splice {
 public:
  Splice(const Analysis& earlier, const Graph& later, GraphMatch match)
      : m_earlier(earlier), m_later(later), m_match(std::move(match)) {}

  std::optional<FusionReport> report(const FusionOptions& fusion, const PlanOptions& plan, KnownSavings& known) && {
    if (m_match.changedLater.size() > kMostNodes || m_match.changedEarlier.size() > kMostNodes) return std::nullopt;
    const Zone near = grown({m_match.changedEarlier, m_match.changedLater}, kHops);
    const Zone core = grown(withChains(near), 0);
    const Zone ring = grown(core, kHops);
    m_window = grown(withChains(ring), kHops).later;
    if (m_window.size() > kMostNodes) return std::nullopt;
    const Result<FusionReport> window = fuseByPlans(windowOf(m_later, m_window), fusion, plan, &known);
    if (!window) return std::nullopt;
    setFlags(core, ring);
    return spliced(*window, fusion.rules ? *fusion.rules : builtinRules());
  }

 private:
  Zone grown(Zone zone, int hops) const {
    zone.earlier = nodesAround(m_earlier.graph(), zone.earlier, hops);
    zone.later = nodesAround(m_later, zone.later, hops);
    const std::size_t numEarlier = zone.earlier.size();
    for (const NodeId id : zone.later)
      if (const NodeId before = m_match.earlierOf[toIndex(id)]; before >= 0) zone.earlier.push_back(before);
    for (std::size_t i = 0; i < numEarlier; ++i)
      if (const NodeId after = m_match.laterOf[toIndex(zone.earlier[i])]; after >= 0) zone.later.push_back(after);
    makeAscending(zone.earlier);
    makeAscending(zone.later);
    return zone;
  }

  /// With all ops of the chains that were tried there, which may be long.
  Zone withChains(Zone zone) const {
    const std::vector<bool> isNear = flagsOf(zone.earlier, m_earlier.graph().nodes().size());
    for (const Attempt& attempt : m_earlier.report.attempts)
      if (touches(attempt.nodes, isNear))
        zone.earlier.insert(zone.earlier.end(), attempt.nodes.begin(), attempt.nodes.end());
    makeAscending(zone.earlier);
    return zone;
  }

  void setFlags(const Zone& core, const Zone& ring) {
    m_isCoreEarlier = flagsOf(core.earlier, m_earlier.graph().nodes().size());
    m_isCoreLater = flagsOf(core.later, m_later.nodes().size());
    m_isRingLater = flagsOf(ring.later, m_later.nodes().size());
  }

  std::optional<FusionReport> spliced(const FusionReport& window, const RuleCatalog& rules) const {
    const FusionReport& before = m_earlier.report;
    FusionReport report{.book = before.book, .device = before.device};
    const bool isLocal = splice(before.forward, window.forward, report.forward) &&
                         splice(before.backward, window.backward, report.backward) &&
                         splice(before.attempts, window.attempts, report.attempts);
    if (!isLocal) return std::nullopt;
    for (auto* const list : {&report.forward, &report.backward}) {
      const auto place = [](const FusedOperation& entry) { return entry.nodes.back(); };
      std::ranges::inplace_merge(*list, std::ranges::is_sorted_until(*list, {}, place), {}, place);
    }
    sortAttempts(report, rules);
    spliceOperands(window, report);
    return verifyExpansion(m_later, report) ? std::optional(std::move(report)) : std::nullopt;
  }

  /// False: the ring differs.
  template <class Item>
  bool splice(const std::vector<Item>& before, const std::vector<Item>& window, std::vector<Item>& result) const {
    std::vector<Item> ringBefore;
    std::vector<Item> ringAfter;
    result.reserve(before.size() + window.size());
    for (const Item& item : before) {
      if (touches(item.nodes, m_isCoreEarlier)) continue;
      result.push_back(mapped(item, m_match.laterOf));
      if (touches(result.back().nodes, m_isRingLater)) ringBefore.push_back(result.back());
    }
    for (const Item& item : window) {
      Item own = mapped(item, m_window);
      if (touches(own.nodes, m_isCoreLater))
        result.push_back(std::move(own));
      else if (touches(own.nodes, m_isRingLater))
        ringAfter.push_back(std::move(own));
    }
    return std::ranges::equal(ringBefore, ringAfter, [](const Item& a, const Item& b) { return isSame(a, b); });
  }

  /// In the order of the graph: those of forward, then those of backward.
  void spliceOperands(const FusionReport& window, FusionReport& report) const {
    for (FusedOperand operand : m_earlier.report.fusedOperands) {
      if (m_isCoreEarlier[toIndex(operand.reader)]) continue;
      operand.reader = m_match.laterOf[toIndex(operand.reader)];
      report.fusedOperands.push_back(operand);
    }
    for (FusedOperand operand : window.fusedOperands) {
      operand.reader = m_window[toIndex(operand.reader)];
      if (m_isCoreLater[toIndex(operand.reader)]) report.fusedOperands.push_back(operand);
    }
    std::ranges::sort(report.fusedOperands, {}, [](const FusedOperand& operand) {
      return std::tuple(operand.type == TensorType::GradOutput, operand.isAmaxOnly, operand.reader);
    });
  }

  const Analysis& m_earlier;
  const Graph& m_later;
  const GraphMatch m_match;
  std::vector<NodeId> m_window;  // in the later graph, by node of the window
  std::vector<bool> m_isCoreEarlier;
  std::vector<bool> m_isCoreLater;
  std::vector<bool> m_isRingLater;  // or core
};

}  // namespace

std::optional<FusionReport> splicedReport(const Analysis& earlier, const Graph& later, const FusionOptions& fusion,
                                          const PlanOptions& plan, KnownSavings& known) {
  std::optional<GraphMatch> match = matchGraphs(earlier.graph(), later);
  if (!match) return std::nullopt;
  return Splice(earlier, later, std::move(*match)).report(fusion, plan, known);
}

}  // namespace fuseline
