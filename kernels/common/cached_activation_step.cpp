// Finds the operands of activations that keep their input in E4M3.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/cached_activation_step.h"

namespace fuseline::cached_activation {

ElementwiseProgram innerProgram(const StepRequest& request) {
  const Node& node = request.member(0);
  return cachedActivationProgram(*node.operation, node.attributes, request.step.phase == Phase::Backward);
}

InputOperands findInput(const StepRequest& request) {
  return {.x = findOperand(request, kInput),
          .codes = findOperand(request, kCodes),
          .inverse = findOperand(request, kInverse)};
}

DType dtypeOfInput(const StepRequest& request) {
  return request.graph.spec(request.step.nodes.front(), OperandKind::Input, 0).dtype;
}

Result<InputOperands> requireKeptInput(const StepRequest& request) {
  const InputOperands input = findInput(request);
  if (!input.codes) return missingOperand(request, kCodes);
  if (!input.inverse) return missingOperand(request, kInverse);
  return input;
}

}  // namespace fuseline::cached_activation
