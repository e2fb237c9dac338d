// Lookups among a step's operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/step_operand.h"

#include "kernels/cpu/gemm/decoded_operands.h"

namespace fuseline::cpu {

Binding findOperand(const CompileRequest& request, const OperandKey& key, std::optional<Direction> gemm) {
  const StepRequest& step = request;
  Binding binding{fuseline::findOperand(step, key, gemm)};
  const auto* const decoded = request.decoded ? request.decoded->find(binding.index) : nullptr;
  if (!decoded) return binding;
  binding.spec = {decoded->dtype, binding.spec.shape};
  binding.isTransposed = decoded->isTransposed;
  if (decoded->staysCoded) binding.codes = decoded->copy.quantized->format;
  if (decoded->hasFactor) binding.factor = &decoded->factor;
  return binding;
}

Result<Binding> requireOperand(const CompileRequest& request, const OperandKey& key, std::optional<Direction> gemm) {
  if (const Binding binding = findOperand(request, key, gemm)) return binding;
  return missingOperand(request, key);
}

}  // namespace fuseline::cpu
