// Finds the operands of Quantize's dequantization.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/dequantize_step.h"

namespace fuseline {

Result<DequantizeStep> readDequantize(const StepRequest& request) {
  const bool isForward = request.step.phase == Phase::Forward;
  const Result<Binding> codes =
      requireOperand(request, {0, isForward ? OperandKind::Input : OperandKind::GradOutput, 0});
  if (!codes) return codes.error();
  const Result<Binding> numbers =
      requireOperand(request, {0, isForward ? OperandKind::Output : OperandKind::GradInput, 0});
  if (!numbers) return numbers.error();
  return DequantizeStep{.codes = *codes, .numbers = *numbers};
}

}  // namespace fuseline
