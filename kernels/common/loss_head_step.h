// Steps of a head and its loss: a linear layer, or one with a tied weight, and a CrossEntropy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/cross_entropy_form.h"
#include "kernels/common/linear_step.h"

namespace fuseline {

struct LossHeadStep {
  CrossEntropyForm form;
  LinearSize size;
  Binding x, weight, target;
  Binding y, lse;           // either may be absent in forward
  Binding dy, dx, dWeight;  // of backward; without dx or dWeight that gradient is not requested

  bool isByRow() const { return form.reduction == LossReduction::None; }
};

/// Errors: those of requireOperand().
Result<LossHeadStep> readLossHead(const StepRequest& request);

}  // namespace fuseline
