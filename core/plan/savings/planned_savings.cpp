// Plans the neighborhood of each fusion twice, but for those that have the shape of an earlier one.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/savings/planned_savings.h"

#include "core/fusion/fused_operands.h"
#include "core/fusion/lost_fusions.h"
#include "core/graph/graph_window.h"
#include "core/plan/savings/repaired_attributes.h"
#include "core/plan/savings/window_shapes.h"
#include "core/support/to_index.h"
#include "core/tensor/scaling.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

/// The steps of a fusion differ, and those of the ops that share its tensors: their producers and consumers, behind
/// views. Farther ops cost the same in both plans.
constexpr int kHops = 4;
/// The first consumers of a tensor: further ones cost the same in both plans as these do.
constexpr int kMostReaders = 16;

/// A scale that follows from the amax of the whole tensor takes a pass of its own, unless an earlier step found it.
std::int64_t amaxBytes(const Step& step, const QuantizeWork& work) {
  if (work.isAmaxOnly()) return 0;
  const Scaling scaling = (work.quantizers.rowwise ? work.quantizers.rowwise : work.quantizers.columnwise)->scaling;
  const bool needsAmax = scaling == Scaling::PerTensor || isNvfp4(scaling);
  const bool isKnown =
      step.find({work.member, OperandKind::Parameter, 0}) || step.find({work.member, OperandKind::Input, 2});
  return needsAmax && !isKnown ? work.spec.bytes() : 0;
}

Saving operator-(const Saving& a, const Saving& b) {
  return {.bytes = a.bytes - b.bytes, .launches = a.launches - b.launches};
}

Saving& operator+=(Saving& a, const Saving& b) {
  a.bytes += b.bytes;
  a.launches += b.launches;
  return a;
}

class PlannedSavings {
 public:
  PlannedSavings(const Graph& graph, FusionOptions fusion, const PlanOptions& options, KnownSavings& known)
      : m_graph(graph),
        m_fusion(std::move(fusion)),
        m_options(options),
        m_known(known),
        m_shapes(graph, m_fusion.switches, known.numbers),
        m_forward(graph.nodes().size(), nullptr),
        m_backward(graph.nodes().size(), nullptr) {}

  /// With no other fusion.
  Saving ofLegal(const Match& match) { return *saving({&match.rule, match.nodes}, Check::None, {}); }

  /// From now on with the fusions of this report, which must outlive the calls.
  void plan(const FusionReport& report) {
    m_isFused = true;
    for (const auto& [list, owners] :
         {std::pair(&report.forward, &m_forward), std::pair(&report.backward, &m_backward)})
      for (const FusedOperation& entry : *list)
        for (const NodeId id : entry.nodes) (*owners)[toIndex(id)] = &entry;
  }

  /// nullopt: no plan tells.
  std::optional<Saving> of(const Attempt& attempt) {
    const FusionPlace place{attempt.rule, attempt.nodes};
    switch (attempt.outcome) {
      case Outcome::Fused: return saving(place, Check::None, {});
      case Outcome::SwitchedOff:
      case Outcome::TakenByAnother:
      case Outcome::MeasuredSlower:
      case Outcome::OutsideUse: return saving(place, Check::Legality, {});
      case Outcome::ConditionFailed: {
        const AttributesByNode repaired = repairedAttributes(m_graph, attempt);
        return repaired.empty() ? std::nullopt : saving(place, Check::Legality, repaired);
      }
      default: return std::nullopt;
    }
  }

 private:
  /// The entry of each op; nullptr: none is known.
  using EntryOwners = std::vector<const FusedOperation*>;
  enum class Check : std::uint8_t { None, Legality };

  std::optional<Saving> saving(const FusionPlace& place, Check check, const AttributesByNode& repaired) {
    const std::vector<NodeId> nodes = nodesOfWindow(place.nodes);
    const auto [known, isNew] = m_known.savings.try_emplace(shapeOf(place, nodes, check, repaired));
    if (isNew) known->second = planned(place, nodes, check, repaired);
    return known->second;
  }

  /// Also of its fusions, and of the one in question.
  WindowShape shapeOf(const FusionPlace& place, const std::vector<NodeId>& nodes, Check check,
                      const AttributesByNode& repaired) {
    WindowShape shape = m_shapes.of(nodes);
    const auto add = [&](const FusionRule* rule, const std::vector<NodeId>& members) {
      shape.insert(shape.end(), {-1, m_known.rules.of(rule)});
      for (const NodeId id : members) shape.push_back(mapped(nodes, id));
    };
    for (const EntryOwners* const owners : {&m_forward, &m_backward}) {
      visitEntries(nodes, *owners, [&](const FusedOperation& entry) { add(entry.rule, entry.nodes); });
      shape.push_back(-1);
    }
    add(place.rule, place.nodes);
    shape.push_back(-1 - static_cast<int>(check));
    for (const auto& [id, attributes] : repaired)
      for (const auto& [name, value] : attributes)
        shape.insert(shape.end(), {mapped(nodes, id), m_known.edits.of(name + '=' + toString(value))});
    return shape;
  }

  /// With all ops of the entries that it touches. Entries that only these touch are cut: they are farther away, and
  /// entries of both passes may overlap along a whole chain.
  std::vector<NodeId> nodesOfWindow(const std::vector<NodeId>& place) const {
    std::vector<NodeId> nodes = nodesAround(m_graph, place, kHops, kMostReaders);
    for (const auto& entries : {entriesOf(nodes, m_forward), entriesOf(nodes, m_backward)})
      for (const FusedOperation* entry : entries) nodes.insert(nodes.end(), entry->nodes.begin(), entry->nodes.end());
    std::ranges::sort(nodes);
    nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
    return nodes;
  }

  std::optional<Saving> planned(const FusionPlace& place, const std::vector<NodeId>& nodes, Check check,
                                const AttributesByNode& repaired) const {
    const std::optional<Graph> window = windowOf(m_graph, nodes, repaired);
    if (!window) return std::nullopt;
    FusionPlace own{place.rule, {}};
    for (const NodeId id : place.nodes) own.nodes.push_back(mapped(nodes, id));
    FusionReport report = unfused(*window);
    report.book = m_fusion.book;
    if (m_isFused) {
      report.forward = entriesIn(nodes, m_forward);
      report.backward = entriesIn(nodes, m_backward);
    }
    addFusedOperands(*window, m_fusion, m_fusion.rules ? *m_fusion.rules : builtinRules(), report);
    const FusionReport fused = reportWith(*window, m_fusion, report, own);
    const FusionReport others = reportWithout(*window, m_fusion, fused, own);
    if (check == Check::Legality && !isLegalBeside(*window, m_fusion, others, own)) return std::nullopt;
    return costIn(*window, others) - costIn(*window, fused);
  }

  static NodeId mapped(const std::vector<NodeId>& nodes, NodeId id) {
    return static_cast<NodeId>(std::ranges::lower_bound(nodes, id) - nodes.begin());
  }

  /// In the order of the report, each once.
  static std::vector<const FusedOperation*> entriesOf(const std::vector<NodeId>& nodes, const EntryOwners& owners) {
    std::vector<const FusedOperation*> entries;
    for (const NodeId id : nodes)
      if (const FusedOperation* const entry = owners[toIndex(id)]) entries.push_back(entry);
    std::ranges::sort(entries);
    entries.erase(std::ranges::unique(entries).begin(), entries.end());
    return entries;
  }

  /// Entries with ops outside of the window are cut into single ops.
  template <class Visit>
  static void visitEntries(const std::vector<NodeId>& nodes, const EntryOwners& owners, const Visit& visit) {
    const auto isInside = [&](NodeId id) { return std::ranges::binary_search(nodes, id); };
    for (const FusedOperation* entry : entriesOf(nodes, owners)) {
      if (std::ranges::all_of(entry->nodes, isInside)) {
        visit(*entry);
        continue;
      }
      for (const NodeId id : entry->nodes)
        if (isInside(id)) visit(FusedOperation{.nodes = {id}, .ranks = entry->ranks});
    }
  }

  static std::vector<FusedOperation> entriesIn(const std::vector<NodeId>& nodes, const EntryOwners& owners) {
    std::vector<FusedOperation> copies;
    visitEntries(nodes, owners, [&](const FusedOperation& entry) {
      copies.push_back(entry);
      for (NodeId& node : copies.back().nodes) node = mapped(nodes, node);
    });
    return copies;
  }

  Saving costIn(const Graph& window, const FusionReport& report) const {
    return costOf(makePlan(window, report, m_options), m_fusion.capabilities);
  }

  const Graph& m_graph;
  FusionOptions m_fusion;
  const PlanOptions& m_options;
  KnownSavings& m_known;
  WindowShapes m_shapes;
  EntryOwners m_forward;
  EntryOwners m_backward;
  bool m_isFused = false;
};

}  // namespace

Saving costOf(const Step& step) {
  if (!step.isWork()) return {};
  Saving cost{.bytes = step.bytesRead + step.bytesWritten, .launches = 1};
  if (step.isQuantize())
    for (const QuantizeWork& work : step.copies) cost.bytes += amaxBytes(step, work);
  return cost;
}

Saving costOf(const Plan& plan, const Capabilities& device) {
  Saving cost;
  for (const Step& step : plan.steps) {
    cost += costOf(step);
    if (device.extraCost && step.isWork()) cost += device.extraCost(plan, step);
  }
  return cost;
}

Result<FusionReport> fuseByPlans(const Graph& graph, FusionOptions fusion, const PlanOptions& options,
                                 KnownSavings* known, const std::stop_token& stop) {
  KnownSavings own;
  PlannedSavings planned(graph, fusion, options, known ? *known : own);
  fusion.predictor = [&](const Match& match) { return stop.stop_requested() ? Saving() : planned.ofLegal(match); };
  Result<FusionReport> report = fuse(graph, fusion);
  if (!report) return report;
  planned.plan(*report);
  for (Attempt& attempt : report->attempts)
    if (attempt.saving && !stop.stop_requested())
      if (const std::optional<Saving> saving = planned.of(attempt)) attempt.saving = saving;
  sortAttempts(*report, fusion.rules ? *fusion.rules : builtinRules());
  explainLost(graph, fusion, *report);
  return report;
}

}  // namespace fuseline
