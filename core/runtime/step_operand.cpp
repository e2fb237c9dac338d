// Lookups among a step's operands.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/step_operand.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

template <class Wanted>
Binding findOperandWhere(const StepRequest& request, const Wanted& isWanted) {
  const auto& operands = request.step.operands;
  const auto found = std::ranges::find_if(operands, isWanted);
  if (found == operands.end()) return {};
  const auto index = static_cast<int>(found - operands.begin());
  const auto decoded = std::ranges::find(request.decoded, index, &Binding::index);
  if (decoded != request.decoded.end()) return *decoded;
  const PlanTensor& tensor = request.plan.tensors[static_cast<std::size_t>(found->tensor)];
  return {.index = index,
          .spec = tensor.spec,
          .access = found->access,
          .rowWidth = tensor.columns.width,
          .rowStride = tensor.columns.rowStride};
}

}  // namespace

Binding findOperand(const StepRequest& request, const OperandKey& key, std::optional<Usage> gemm) {
  return findOperandWhere(request, [&](const StepOperand& operand) {
    return operand.key == key && (!gemm || !operand.direction || *operand.direction == *gemm);
  });
}

Binding findSlot(const StepRequest& request, OperandKind kind, int slot) {
  return slot < 0 ? Binding() : findOperand(request, {0, kind, slot});
}

Binding findPlainOperand(const StepRequest& request, const OperandKey& key) {
  return findOperandWhere(request,
                          [&](const StepOperand& operand) { return operand.key == key && !operand.direction; });
}

Result<Binding> requireOperand(const StepRequest& request, const OperandKey& key, std::optional<Usage> gemm) {
  if (const Binding binding = findOperand(request, key, gemm)) return binding;
  return missingOperand(request, key);
}

Result<Binding> requireResult(const StepRequest& request, const OperandKey& key) {
  if (Binding stored = findOperand(request, key)) return stored;
  if (const QuantizeWork* const work = request.step.workOn(key)) return Binding{.index = -1, .spec = work->spec};
  return missingOperand(request, key);
}

Error missingOperand(const StepRequest& request, const OperandKey& key) {
  return {fmt::format("Step \"{}\": kernel {} needs the operand {}. This is an internal error; please report it with "
                      "the pipeline file.",
                      request.step.name, request.step.kernel, toString(key)),
          ErrorKind::RunFailed};
}

int residualSlot(const FusibleOperation& operation, std::string_view port) {
  const auto& residuals = operation.residuals;
  const auto found = std::ranges::find_if(residuals, [&](const Port& residual) { return residual.name == port; });
  return found == residuals.end() ? -1 : static_cast<int>(found - residuals.begin());
}

}  // namespace fuseline
