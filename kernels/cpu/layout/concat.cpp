// Kernel "Concat": several tensors to columns of y, and columns of its gradient to theirs.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/layout/column_copy.h"

namespace fuseline::cpu::kernels {

KernelDef concat();

namespace {

Result<std::unique_ptr<Kernel>> compileConcat(const CompileRequest& request) {
  const bool isForward = request.step.phase == Phase::Forward;
  const Result<Binding> whole =
      requireOperand(request, {0, isForward ? OperandKind::Output : OperandKind::GradOutput, 0});
  if (!whole) return whole.error();
  const OperandKind kind = isForward ? OperandKind::Input : OperandKind::GradInput;
  const std::vector<TensorSpec> inputs = request.graph.inputSpecs(request.step.nodes.front());
  return makeColumnCopy(*whole, columnPieces(request, kind, inputs),
                        isForward ? ColumnCopyDirection::FromPieces : ColumnCopyDirection::ToPieces,
                        request.settings.threads);
}

}  // namespace

KernelDef concat() {
  return {
      .name = "Concat",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = compileConcat,
  };
}

}  // namespace fuseline::cpu::kernels
