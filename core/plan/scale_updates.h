// Delayed scaling in a plan: the scales and amax histories, and the step that updates them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan_tensors.h"
#include "core/quant/apply_recipe.h"

#include <optional>
#include <vector>

namespace fuseline {

class ScaleUpdates {
 public:
  /// Adds the tensors of all states. Graph and tensors outlive it.
  ScaleUpdates(const Graph& graph, PlanTensors& tensors);

  /// All states change when backward ends. TransformerEngine changes those of forward when forward ends, which gives
  /// the same scales: backward reads none of them. Nothing: there are no states.
  std::optional<Step> stepAtEnd() const;

 private:
  int slotOf(const QuantizerState& state) const;
  void addState(Step& step, const QuantizerState& state) const;

  const Graph& m_graph;
  const PlanTensors& m_tensors;
  std::vector<QuantizerState> m_states;
};

}  // namespace fuseline
