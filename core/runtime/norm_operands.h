// The operands of norm steps, the same for every backend.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"

namespace fuseline {

/// The operands of a norm's forward other than its input. gamma and beta are absent without a weight, mean except in
/// LayerNorm; rstd is the factor of every row.
struct NormForwardOperands {
  Binding gamma, beta, y, mean, rstd;
};

/// norm: a member of the step. Errors: those of requireOperand().
Result<NormForwardOperands> bindNormForward(const StepRequest& request, int norm);

/// The sum of a residual and x, if it is requested: an output of an op upstream of the norm. The planner makes further
/// outputs views of it.
Binding findNormSum(const StepRequest& request, int norm);

/// Keys of a norm's input gradient and of its addend. The extra gradient may be absent.
struct NormGradientKeys {
  OperandKey gradInput;
  OperandKey extraGradient;
};

/// For a norm that is the only member.
NormGradientKeys ownNormGradients();
/// For MakeExtraOutput (member 0) and a norm (member 1): the gradient of the output that the norm does not read is
/// added.
NormGradientKeys branchedNormGradients(const StepRequest& request);

struct NormBackwardOperands {
  Binding x, gradOutput, extra, gamma, mean, rstd, gradInput, gradGamma, gradBeta;
};

/// Errors: those of requireOperand().
Result<NormBackwardOperands> bindNormBackward(const StepRequest& request, int norm, const NormGradientKeys& keys);

}  // namespace fuseline
