// Lookups among a step's operands.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/step_operand.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cuda {

Binding findOperand(const CompileRequest& request, const OperandKey& key, std::optional<Direction> gemm) {
  const auto& operands = request.step.operands;
  const auto found = std::ranges::find_if(operands, [&](const StepOperand& operand) {
    return operand.key == key && (!gemm || !operand.direction || *operand.direction == *gemm);
  });
  if (found == operands.end()) return {};
  return {
      .index = static_cast<int>(found - operands.begin()), .spec = request.plan.spec(*found), .access = found->access};
}

Result<Binding> requireOperand(const CompileRequest& request, const OperandKey& key, std::optional<Direction> gemm) {
  if (const Binding binding = findOperand(request, key, gemm)) return binding;
  return Error{fmt::format("cuda: step \"{}\" gives kernel {} no operand {}, which it needs. This is a fault of the "
                           "plan; please report it with the pipeline file.",
                           request.step.name, request.step.kernel, toString(key)),
               ErrorKind::RunFailed};
}

int residualSlot(const FusibleOperation& operation, std::string_view port) {
  const auto& residuals = operation.residuals;
  const auto found = std::ranges::find_if(residuals, [&](const Port& residual) { return residual.name == port; });
  return found == residuals.end() ? -1 : static_cast<int>(found - residuals.begin());
}

}  // namespace fuseline::cuda
