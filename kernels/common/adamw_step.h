// The operands and options of kernels "adamw" and "grad_norm".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/adamw.h"
#include "core/runtime/step_operand.h"

#include <vector>

namespace fuseline {

struct AdamWStep {
  struct Parameter {
    Binding weight, gradient, expAvg, expAvgSq;
    Binding master;  // absent for float32 weights

    std::int64_t elements() const { return weight.spec.numElements(); }
    /// Is the gradient a buffer that later passes add to?
    bool clearsGradient() const { return gradient.access == OperandAccess::Accumulate; }
  };
  AdamW options;
  Binding numUpdates;
  Binding gradientSquares;            // absent if gradients are not clipped
  std::vector<Parameter> parameters;  // that this rank updates

  AdamWTerms<float> terms() const { return adamWTerms<float>(options); }
};

/// Errors: the step has no such operand. It is a fault of the plan.
Result<AdamWStep> adamWStep(const StepRequest& request);

struct GradNormStep {
  std::vector<Binding> shards;  // gradients of parameters that the ranks share
  std::vector<Binding> wholes;  // the others
  Binding squares;              // float32: the sums over the two
};

/// Errors: the same.
Result<GradNormStep> gradNormStep(const StepRequest& request);

}  // namespace fuseline
