// Compares the traffic and launches of a fusion with those of its ops.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/saving_model.h"

#include <cstddef>

namespace fuseline {

std::vector<Phase> phasesOf(const Graph& graph, FusionPass pass) {
  switch (pass) {
    case FusionPass::Forward:
    case FusionPass::ForwardQuantization: return {Phase::Forward};
    case FusionPass::Backward:
    case FusionPass::BackwardQuantization: return {Phase::Backward};
    case FusionPass::Joint:
      if (graph.pass() != ExecutionMode::Training) return {Phase::Forward};
      return {Phase::Forward, Phase::Backward};
  }
  return {};
}

Saving SavingModel::savingOf(const Match& match) const {
  const FusedOperation fusion{.rule = &match.rule, .nodes = match.nodes};
  const SavedSet ownSaved = fusion.rule->saves ? savedWith(fusion) : SavedSet{};
  const SavedSet& fusedSaved = fusion.rule->saves ? ownSaved : m_unfusedSaved;
  Saving saving;
  for (const Phase phase : phasesOf(m_graph, match.rule.pass)) {
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

std::int64_t SavingModel::keptLess(const Match& match) const {
  const FusedOperation fusion{.rule = &match.rule, .nodes = match.nodes};
  const SavedSet kept = savedWith(fusion);
  std::int64_t bytes = 0;
  for (const ValueId value : keptByMembers(fusion).values)
    if (!kept.values.contains(value)) bytes += m_graph.value(value).spec.bytes();
  return bytes;
}

Saving SavingModel::costOf(const FusedOperation& entry, Phase phase, const SavedSet& saved) const {
  const EntryOperands operands =
      phase == Phase::Forward ? forwardOperands(m_graph, entry, saved) : backwardOperands(m_graph, entry);
  return {.bytes = trafficBytes(m_graph, entry, operands), .launches = operands.isView() ? 0 : 1};
}

/// An op by itself is part of many attempts.
const Saving& SavingModel::basicCost(NodeId id, Phase phase) const {
  std::vector<std::optional<Saving>>& costs = m_basicCosts[phase == Phase::Forward ? 0 : 1];
  if (costs.empty()) costs.resize(m_graph.nodes().size());
  std::optional<Saving>& cost = costs[static_cast<std::size_t>(id)];
  if (!cost) cost = costOf({.nodes = {id}}, phase, m_unfusedSaved);
  return *cost;
}

SavedSet SavingModel::keptByMembers(const FusedOperation& fusion) const {
  SavedSet kept;
  for (const NodeId id : fusion.nodes)
    for (const ValueId value : keptBy({.nodes = {id}}).values) kept.values.insert(value);
  return kept;
}

/// What is kept of the members' own tensors, once a joint fusion's choice has replaced the members' contexts.
SavedSet SavingModel::savedWith(const FusedOperation& fusion) const {
  const SavedSet replaced = keptByMembers(fusion);
  SavedSet saved = keptBy(fusion);
  for (const NodeId id : fusion.nodes)
    for (const ValueId output : m_graph.node(id).outputs)
      if (m_unfusedSaved.values.contains(output) && !replaced.values.contains(output)) saved.values.insert(output);
  return saved;
}

}  // namespace fuseline
