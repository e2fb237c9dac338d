// Plans the neighborhood of each fusion twice, but for those that have the shape of an earlier one.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/savings/planned_savings.h"

#include "core/fusion/fused_operands.h"
#include "core/fusion/fusion_stages.h"
#include "core/graph/graph_window.h"
#include "core/plan/savings/window_shapes.h"
#include "core/support/to_index.h"
#include "core/tensor/scaling.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

/// The steps of a fusion differ, and those of the ops that share its tensors: their producers and consumers, behind
/// views. Farther ops cost the same in both plans.
constexpr int kHops = 4;

bool isQuantization(const FusionRule& rule) { return stageOf(rule) == FusionStage::FusedOperands; }

FusedOperand fusedOperandOf(const Attempt& hit) {
  const bool isForward = hit.rule->pass == FusionPass::ForwardQuantization;
  return {.reader = isForward ? hit.nodes.back() : hit.nodes.front(),
          .type = isForward ? TensorType::Input : TensorType::GradOutput,
          .isAmaxOnly = hit.rule->findsAmaxOnly};
}

/// A scale that follows from the amax of the whole tensor takes a pass of its own, unless an earlier step found it.
std::int64_t amaxBytes(const Step& step, const QuantizeWork& work) {
  if (work.isAmaxOnly()) return 0;
  const Scaling scaling = (work.quantizers.rowwise ? work.quantizers.rowwise : work.quantizers.columnwise)->scaling;
  const bool needsAmax = scaling == Scaling::PerTensor || isNvfp4(scaling);
  const bool isKnown =
      step.find({work.member, OperandKind::Parameter, 0}) || step.find({work.member, OperandKind::Input, 2});
  return needsAmax && !isKnown ? work.spec.bytes() : 0;
}

/// In the place of the entry, as others may run between its ops in the order of the graph.
void takeApart(const Graph& graph, const Attempt& hit, Phase phase, std::vector<FusedOperation>& list) {
  const auto entry = std::ranges::find_if(
      list, [&](const FusedOperation& each) { return each.rule == hit.rule && each.nodes == hit.nodes; });
  if (entry == list.end()) return;
  std::vector<FusedOperation> single;
  for (const NodeId id : entry->nodes)
    if (phase == Phase::Forward || graph.node(id).takesPartInBackward())
      single.push_back({.nodes = {id}, .ranks = entry->ranks});
  list.insert(list.erase(entry), single.begin(), single.end());
}

/// Quantization follows from the entries.
void fuseOperands(const Graph& graph, const FusionOptions& fusion, FusionReport& report) {
  report.fusedOperands.clear();
  addFusedOperands(graph, fusion, fusion.rules ? *fusion.rules : builtinRules(), report);
}

class PlannedSavings {
 public:
  PlannedSavings(const Graph& graph, const FusionOptions& fusion, const PlanOptions& options,
                 const FusionReport& report)
      : m_graph(graph), m_fusion(fusion), m_options(options), m_report(report), m_shapes(graph, fusion.switches) {
    for (const auto& [list, owner] :
         {std::pair(&report.forward, &m_forward), std::pair(&report.backward, &m_backward)}) {
      owner->assign(graph.nodes().size(), nullptr);
      for (const FusedOperation& entry : *list)
        for (const NodeId id : entry.nodes) (*owner)[toIndex(id)] = &entry;
    }
  }

  Saving savingOf(const Attempt& hit) {
    const std::vector<NodeId> nodes = nodesAround(hit.nodes);
    const auto [saving, isNew] = m_savings.try_emplace(shapeOf(nodes, hit));
    if (isNew) saving->second = differenceOf(nodes, hit);
    return saving->second;
  }

 private:
  using Owners = std::vector<const FusedOperation*>;

  /// With all ops of the entries that it touches. Entries that only these touch are cut: they are farther away, and
  /// entries of both passes may overlap along a whole chain.
  std::vector<NodeId> nodesAround(const std::vector<NodeId>& hit) const {
    std::vector<NodeId> nodes = fuseline::nodesAround(m_graph, hit, kHops);
    for (const auto& entries : {entriesOf(nodes, m_forward), entriesOf(nodes, m_backward)})
      for (const FusedOperation* entry : entries) nodes.insert(nodes.end(), entry->nodes.begin(), entry->nodes.end());
    std::ranges::sort(nodes);
    nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
    return nodes;
  }

  /// The node in a window of these.
  static NodeId mapped(const std::vector<NodeId>& nodes, NodeId id) {
    return static_cast<NodeId>(std::ranges::lower_bound(nodes, id) - nodes.begin());
  }

  /// In the order of the report, each once.
  static std::vector<const FusedOperation*> entriesOf(const std::vector<NodeId>& nodes, const Owners& owner) {
    std::vector<const FusedOperation*> entries;
    for (const NodeId id : nodes)
      if (const FusedOperation* const entry = owner[toIndex(id)]) entries.push_back(entry);
    std::ranges::sort(entries);
    entries.erase(std::ranges::unique(entries).begin(), entries.end());
    return entries;
  }

  /// Entries with ops outside of the window are cut into single ops.
  template <class Visit>
  static void visitEntries(const std::vector<NodeId>& nodes, const Owners& owner, const Visit& visit) {
    const auto isInside = [&](NodeId id) { return std::ranges::binary_search(nodes, id); };
    for (const FusedOperation* entry : entriesOf(nodes, owner)) {
      if (std::ranges::all_of(entry->nodes, isInside)) {
        visit(*entry);
        continue;
      }
      for (const NodeId id : entry->nodes)
        if (isInside(id)) visit(FusedOperation{.nodes = {id}, .ranks = entry->ranks});
    }
  }

  /// Also of its fusions, and of the one in question.
  WindowShape shapeOf(const std::vector<NodeId>& nodes, const Attempt& hit) {
    WindowShape shape = m_shapes.of(nodes);
    const auto add = [&](const FusionRule* rule, const std::vector<NodeId>& members) {
      shape.insert(shape.end(), {-1, m_rules.of(rule)});
      for (const NodeId id : members) shape.push_back(mapped(nodes, id));
    };
    for (const Owners* owner : {&m_forward, &m_backward}) {
      visitEntries(nodes, *owner, [&](const FusedOperation& entry) { add(entry.rule, entry.nodes); });
      shape.push_back(-1);
    }
    add(hit.rule, hit.nodes);
    return shape;
  }

  Saving differenceOf(const std::vector<NodeId>& nodes, const Attempt& hit) const {
    const Graph graph = windowOf(m_graph, nodes);
    FusionReport report{
        .forward = copiesOf(nodes, m_forward), .backward = copiesOf(nodes, m_backward), .book = m_report.book};
    fuseOperands(graph, m_fusion, report);
    Attempt own{.rule = hit.rule};
    for (const NodeId id : hit.nodes) own.nodes.push_back(mapped(nodes, id));
    const Saving with = planned(graph, report);
    const Saving without = planned(graph, reportWithout(graph, m_fusion, report, own));
    return {.bytes = without.bytes - with.bytes, .launches = without.launches - with.launches};
  }

  static std::vector<FusedOperation> copiesOf(const std::vector<NodeId>& nodes, const Owners& owner) {
    std::vector<FusedOperation> copies;
    visitEntries(nodes, owner, [&](const FusedOperation& entry) {
      copies.push_back(entry);
      for (NodeId& node : copies.back().nodes) node = mapped(nodes, node);
    });
    return copies;
  }

  Saving planned(const Graph& graph, const FusionReport& report) const {
    return costOf(makePlan(graph, report, m_options));
  }

  const Graph& m_graph;
  const FusionOptions& m_fusion;
  const PlanOptions& m_options;
  const FusionReport& m_report;
  Owners m_forward;  // the entry of each op
  Owners m_backward;
  WindowShapes m_shapes;
  Numbering<const FusionRule*> m_rules;
  std::map<WindowShape, Saving> m_savings;  // those that are known
};

}  // namespace

Saving costOf(const Plan& plan) {
  Saving cost;
  for (const Step& step : plan.steps) {
    if (!step.isWork()) continue;
    cost.bytes += step.bytesRead + step.bytesWritten;
    cost.launches += 1;
    if (step.isQuantize())
      for (const QuantizeWork& work : step.copies) cost.bytes += amaxBytes(step, work);
  }
  return cost;
}

FusionReport reportWithout(const Graph& graph, const FusionOptions& fusion, const FusionReport& report,
                           const Attempt& hit) {
  FusionReport others = report;
  if (isQuantization(*hit.rule)) {
    std::erase(others.fusedOperands, fusedOperandOf(hit));
    return others;
  }
  takeApart(graph, hit, Phase::Forward, others.forward);
  takeApart(graph, hit, Phase::Backward, others.backward);
  fuseOperands(graph, fusion, others);
  return others;
}

void predictFromPlans(const Graph& graph, const FusionOptions& fusion, const PlanOptions& options,
                      FusionReport& report) {
  PlannedSavings planned(graph, fusion, options, report);
  for (Attempt& attempt : report.attempts)
    if (attempt.outcome == Outcome::Fused) attempt.saving = planned.savingOf(attempt);
}

}  // namespace fuseline
