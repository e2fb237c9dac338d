// Takes fusions apart, and puts others in their place.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/savings/planned_window.h"

#include "core/fusion/fused_operands.h"
#include "core/fusion/fusion_stages.h"
#include "core/fusion/legality.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace fuseline {

namespace {

using EntryOrder = std::vector<FusedOperation>;

bool isQuantization(const FusionRule& rule) { return stageOf(rule) == FusionStage::FusedOperands; }

FusedOperand fusedOperandOf(const FusionPlace& place) {
  const bool isForward = place.rule->pass == FusionPass::ForwardQuantization;
  return {.reader = isForward ? place.nodes.back() : place.nodes.front(),
          .type = isForward ? TensorType::Input : TensorType::GradOutput,
          .isAmaxOnly = place.rule->findsAmaxOnly};
}

EntryOrder& listOf(FusionReport& report, Phase phase) {
  return phase == Phase::Forward ? report.forward : report.backward;
}

/// nodes: ascending.
bool isIn(const FusedOperation& entry, const std::vector<NodeId>& nodes) {
  return std::ranges::any_of(entry.nodes, [&](NodeId id) { return std::ranges::binary_search(nodes, id); });
}

/// Ops by themselves in the place of each entry for which isTaken() is true: in the order of the graph, others may run
/// between them.
template <class Predicate>
void takeApart(const Graph& graph, Phase phase, EntryOrder& list, const Predicate& isTaken) {
  EntryOrder order;
  for (FusedOperation& entry : list) {
    if (!isTaken(entry)) {
      order.push_back(std::move(entry));
      continue;
    }
    for (const NodeId id : entry.nodes)
      if (phase == Phase::Forward || graph.node(id).takesPartInBackward())
        order.push_back({.nodes = {id}, .ranks = entry.ranks});
  }
  list = std::move(order);
}

/// A fusion runs at the place of its last op.
void putTogether(const Graph& graph, Phase phase, const FusionPlace& place, EntryOrder& list) {
  EntryOrder order;
  std::size_t at = 0;
  for (FusedOperation& entry : list)
    if (isIn(entry, place.nodes))
      at = order.size();
    else
      order.push_back(std::move(entry));
  if (phase == Phase::Forward || takesPartInBackward(graph, place.nodes))
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), {.rule = place.rule, .nodes = place.nodes});
  list = std::move(order);
}

/// A joint fusion is in both lists.
void takeApartAt(const Graph& graph, const FusionPlace& place, FusionReport& report) {
  for (const Phase phase : phasesOf(graph, place.rule->pass)) {
    EntryOrder& list = listOf(report, phase);
    const auto isInTheWay = [&](const FusedOperation& entry) { return entry.isFused() && isIn(entry, place.nodes); };
    std::vector<NodeId> alsoIn;
    for (const FusedOperation& entry : list)
      if (isInTheWay(entry) && entry.rule->pass == FusionPass::Joint)
        alsoIn.insert(alsoIn.end(), entry.nodes.begin(), entry.nodes.end());
    std::ranges::sort(alsoIn);
    takeApart(graph, phase, list, isInTheWay);
    const Phase other = phase == Phase::Forward ? Phase::Backward : Phase::Forward;
    EntryOrder& otherList = listOf(report, other);
    const auto isSameJoint = [&](const FusedOperation& entry) {
      return entry.isFused() && entry.rule->pass == FusionPass::Joint && isIn(entry, alsoIn);
    };
    takeApart(graph, other, otherList, isSameJoint);
  }
}

/// Quantization follows from the entries.
void fuseOperands(const Graph& graph, const FusionOptions& fusion, FusionReport& report) {
  report.fusedOperands.clear();
  addFusedOperands(graph, fusion, fusion.rules ? *fusion.rules : builtinRules(), report);
}

EntryList entriesOf(const Graph& graph, const EntryOrder& list) {
  EntryList entries(graph);
  for (const FusedOperation& entry : list)
    if (entry.isFused()) entries.add(entry);
  return entries;
}

FusionOptions asked(FusionOptions fusion, const FusionRule& rule) {
  fusion.switches = {.without = {}, .with = {rule.name}};
  fusion.predictor = {};
  return fusion;
}

bool isQuantizedOnceAllowed(const Graph& graph, const FusionOptions& fusion, FusionReport report,
                            const FusionPlace& place) {
  FusionOptions options = fusion;
  std::erase_if(options.switches.without,
                [&](const std::string& entry) { return entry.substr(0, entry.find('@')) == place.rule->name; });
  fuseOperands(graph, options, report);
  return std::ranges::count(report.fusedOperands, fusedOperandOf(place)) > 0;
}

}  // namespace

FusionReport reportWithout(const Graph& graph, const FusionOptions& fusion, const FusionReport& report,
                           const FusionPlace& place) {
  FusionReport others = report;
  if (isQuantization(*place.rule)) {
    std::erase(others.fusedOperands, fusedOperandOf(place));
    return others;
  }
  takeApartAt(graph, place, others);
  fuseOperands(graph, fusion, others);
  return others;
}

FusionReport reportWith(const Graph& graph, const FusionOptions& fusion, const FusionReport& report,
                        const FusionPlace& place) {
  FusionReport with = report;
  if (isQuantization(*place.rule)) {
    if (std::ranges::count(with.fusedOperands, fusedOperandOf(place)) == 0)
      with.fusedOperands.push_back(fusedOperandOf(place));
    return with;
  }
  takeApartAt(graph, place, with);
  for (const Phase phase : phasesOf(graph, place.rule->pass)) putTogether(graph, phase, place, listOf(with, phase));
  fuseOperands(graph, fusion, with);
  return with;
}

bool isLegalBeside(const Graph& graph, const FusionOptions& fusion, const FusionReport& others,
                   const FusionPlace& place) {
  if (isQuantization(*place.rule)) return isQuantizedOnceAllowed(graph, fusion, others, place);
  const std::optional<std::vector<int>> steps = chainSteps(*place.rule, graph, place.nodes);
  if (!steps) return false;
  const FusionOptions options = asked(fusion, *place.rule);
  const SavedSet saved = savedTensors(graph, unfused(graph).backward);
  const std::vector<InPlaceHazard> hazards;
  const Legality legality(graph, options, saved, hazards);
  return std::ranges::all_of(phasesOf(graph, place.rule->pass), [&](Phase phase) {
    const EntryOrder& list = phase == Phase::Forward ? others.forward : others.backward;
    return legality.tryOn(*place.rule, place.nodes, *steps, entriesOf(graph, list)).outcome == Outcome::Fused;
  });
}

}  // namespace fuseline
