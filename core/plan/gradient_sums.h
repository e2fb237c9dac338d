// The gradients of values: where they come from, and the steps that add them where a value branches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/plan/plan_tensors.h"

#include <set>
#include <vector>

namespace fuseline {

/// All gradients of a value must have been computed before its gradient is read.
class GradientSums {
 public:
  /// Graph and tensors outlive it.
  GradientSums(const Graph& graph, PlanTensors& tensors);

  /// Begins backward with the gradients of the pipeline's outputs. Returns the sums that are complete with these.
  std::vector<Step> addOutputGradients();
  /// Before a backward step: the gradient of a linear op's input is added to one that an earlier linear op wrote for
  /// the same value, by the GEMM itself.
  void shareSums(const FusedOperation& entry);
  /// Has the tensor a gradient to which this step adds?
  bool isBegun(const FusedOperation& entry, const OperandKey& key, int tensor) const;
  /// After a backward step: the input gradients that it computed for a node belong to the values that the node reads.
  /// Returns the sums that are complete with these.
  std::vector<Step> addInputGradients(NodeId id);

 private:
  void add(ValueId id, int tensor, std::vector<Step>& sums);
  void nameSum(ValueId id, int tensor);
  int addSum(ValueId id, std::vector<Step>& sums);
  bool isHandedThrough(ValueId id, int tensor) const;
  int addViewOfOutputGradient(ValueId id, int ofOutput);

  const Graph& m_graph;
  PlanTensors& m_tensors;
  /// Computed so far, of one value.
  struct Parts {
    std::vector<int> tensors;
    int numGradients = 0;  // in these
  };

  std::vector<Parts> m_parts;  // by value
  std::set<int> m_shared;      // tensors of linear ops that further ones may add to
};

}  // namespace fuseline
