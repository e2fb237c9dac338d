// Steps of activations that keep their input in E4M3.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/cached_input.h"
#include "core/runtime/step_operand.h"

namespace fuseline::cached_activation {

inline constexpr OperandKey kInput{.kind = OperandKind::Input};
inline constexpr OperandKey kCodes{.kind = OperandKind::Residual, .slot = kQuantizedInput};
inline constexpr OperandKey kInverse{.kind = OperandKind::Residual, .slot = kInverseScale};

/// The activation itself in the step's pass.
ElementwiseProgram innerProgram(const StepRequest& request);

/// The input, and how it is kept; absent: the step has none.
struct InputOperands {
  Binding x, codes, inverse;
};

InputOperands findInput(const StepRequest& request);
/// To which backward decodes it.
DType dtypeOfInput(const StepRequest& request);
/// The kept input of a backward step, which has no x. Errors: those of requireOperand().
Result<InputOperands> requireKeptInput(const StepRequest& request);

}  // namespace fuseline::cached_activation
