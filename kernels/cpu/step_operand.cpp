// Lookups among a step's operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/step_operand.h"

#include "kernels/cpu/decoded_operands.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cpu {

Binding findOperand(const CompileRequest& request, const OperandKey& key, std::optional<Direction> gemm) {
  const auto& operands = request.step.operands;
  const auto found = std::ranges::find_if(operands, [&](const StepOperand& operand) {
    return operand.key == key && (!gemm || !operand.direction || *operand.direction == *gemm);
  });
  if (found == operands.end()) return {};
  Binding binding{
      .index = static_cast<int>(found - operands.begin()), .spec = request.plan.spec(*found), .access = found->access};
  const auto* const decoded = request.decoded ? request.decoded->find(binding.index) : nullptr;
  if (!decoded) return binding;
  binding.spec = {decoded->dtype, binding.spec.shape};
  binding.isTransposed = decoded->isTransposed;
  binding.factor = &decoded->factor;
  return binding;
}

Result<Binding> requireOperand(const CompileRequest& request, const OperandKey& key, std::optional<Direction> gemm) {
  if (const Binding binding = findOperand(request, key, gemm)) return binding;
  return Error{fmt::format("cpu: step \"{}\" gives kernel {} no operand {}, which it needs. This is a fault of the "
                           "plan; please report it with the pipeline file.",
                           request.step.name, request.step.kernel, toString(key)),
               ErrorKind::RunFailed};
}

int residualSlot(const FusibleOperation& operation, std::string_view port) {
  const auto& residuals = operation.residuals;
  const auto found = std::ranges::find_if(residuals, [&](const Port& residual) { return residual.name == port; });
  return found == residuals.end() ? -1 : static_cast<int>(found - residuals.begin());
}

}  // namespace fuseline::cpu
