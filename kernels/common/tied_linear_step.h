// Steps of TiedLinear: those of a linear layer whose weight is an input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/linear_step.h"

namespace fuseline {

/// Errors: those of requireOperand().
Result<LinearForwardStep> readTiedForward(const StepRequest& request);
/// The result is absent, like all others: not requested. Errors: those of requireOperand().
Result<LinearGradStep> readTiedInputGrad(const StepRequest& request);
Result<LinearGradStep> readTiedWeightGrad(const StepRequest& request);

}  // namespace fuseline
