// Steps that bring a quantized tensor back to the dtype of its tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"

namespace fuseline {

struct DequantizeStep {
  Binding codes, numbers;
};

/// Errors: those of requireOperand().
Result<DequantizeStep> readDequantize(const StepRequest& request);

}  // namespace fuseline
