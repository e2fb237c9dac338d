// Delayed scaling in a plan: the scales and amax histories, and the steps that update them.
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

  /// Forward states change when the forward pass ends, backward states when backward does. Nothing: there are none.
  std::optional<Step> stepAfter(Phase phase) const;

 private:
  int slotOf(const QuantizerState& state) const;
  void addState(Step& step, const QuantizerState& state) const;

  const Graph& m_graph;
  const PlanTensors& m_tensors;
  std::vector<QuantizerState> m_states;
};

}  // namespace fuseline
