// Steps of SwiGLU (member 0), a linear layer (1) and an optional AddExtraInput (2).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/elementwise.h"
#include "core/runtime/step_operand.h"

namespace fuseline::swiglu_linear {

inline constexpr int kActivation = 0;
inline constexpr int kLinear = 1;
inline constexpr int kAdd = 2;
inline constexpr OperandKey kInput{kActivation, OperandKind::Input, 0};
inline constexpr OperandKey kGradInput{kActivation, OperandKind::GradInput, 0};
inline constexpr OperandKey kActivated{kActivation, OperandKind::Output, 0};
inline constexpr OperandKey kActivatedGradient{kActivation, OperandKind::GradOutput, 0};
inline constexpr OperandKey kWeight{kLinear, OperandKind::Parameter, 0};
inline constexpr OperandKey kGradWeight{kLinear, OperandKind::GradParameter, 0};

int lastMember(const StepRequest& request);

/// SwiGLU's output, and its gradient: [.., K].
const TensorSpec& activatedSpec(const StepRequest& request);

/// Results of a pass over SwiGLU's input.
struct ActivationResults {
  bool hasOutput = false;
  bool hasGradient = false;
};

/// Computes the gradient from that of the output, kActivatedGradient.
ElementwiseProgram activationProgram(const StepRequest& request, const ActivationResults& results);

}  // namespace fuseline::swiglu_linear
