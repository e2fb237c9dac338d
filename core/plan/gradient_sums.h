// The gradients of values: where they come from, and the steps that add them where a value branches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan_tensors.h"

#include <vector>

namespace fuseline {

/// All gradients of a value must have been computed before its gradient is read.
class GradientSums {
 public:
  /// Graph and tensors outlive it.
  GradientSums(const Graph& graph, PlanTensors& tensors);

  /// Begins backward with the gradients of the pipeline's outputs. Returns the sums that are complete with these.
  std::vector<Step> addOutputGradients();
  /// After a backward step: the input gradients that it computed for a node belong to the values that the node reads.
  /// Returns the sums that are complete with these.
  std::vector<Step> addInputGradients(NodeId id);

 private:
  void add(ValueId id, int tensor, std::vector<Step>& sums);
  int addSum(ValueId id, std::vector<Step>& sums);
  bool isHandedThrough(ValueId id, int tensor) const;
  int addViewOfOutputGradient(ValueId id, int ofOutput);

  const Graph& m_graph;
  PlanTensors& m_tensors;
  std::vector<std::vector<int>> m_gradients;  // computed so far, by value
};

}  // namespace fuseline
