// Adds the states of delayed scaling to a plan.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/scale_updates.h"

namespace fuseline {

ScaleUpdates::ScaleUpdates(const Graph& graph, PlanTensors& tensors)
    : m_graph(graph), m_tensors(tensors), m_states(quantizerStates(graph)) {
  for (const QuantizerState& state : m_states) {
    const int slot = slotOf(state);
    tensors.add({PlanTensorSource::QuantizerScale, state.node, slot}, state.scaleName, scaleSpec(),
                TensorRole::QuantizerState);
    tensors.add({PlanTensorSource::AmaxHistory, state.node, slot}, state.historyName,
                historySpec(*graph.delayedScaling()), TensorRole::QuantizerState);
  }
}

int ScaleUpdates::slotOf(const QuantizerState& state) const {
  return partSlot(m_graph.node(state.node), state.type, static_cast<int>(state.group));
}

std::optional<Step> ScaleUpdates::stepAtEnd() const {
  Step step{.name = "delayed_scaling", .kernel = "delayed_scaling_update", .phase = Phase::Backward};
  step.scaleUpdate = ScaleUpdateWork{.options = m_graph.delayedScaling().value_or(DelayedScaling()), .maxFinites = {}};
  for (const QuantizerState& state : m_states) addState(step, state);
  if (step.operands.empty()) return std::nullopt;
  m_tensors.countBytes(step);
  return step;
}

void ScaleUpdates::addState(Step& step, const QuantizerState& state) const {
  const int index = static_cast<int>(step.scaleUpdate->maxFinites.size());
  const int slot = slotOf(state);
  step.scaleUpdate->maxFinites.push_back(state.maxFinite);
  step.operands.push_back({.key = {0, OperandKind::Parameter, index},
                           .tensor = m_tensors.find({PlanTensorSource::QuantizerScale, state.node, slot}),
                           .access = OperandAccess::Accumulate});
  step.operands.push_back({.key = {0, OperandKind::Residual, index},
                           .tensor = m_tensors.find({PlanTensorSource::AmaxHistory, state.node, slot}),
                           .access = OperandAccess::Accumulate});
}

}  // namespace fuseline
