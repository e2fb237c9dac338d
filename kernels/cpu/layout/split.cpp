// Kernel "Split": columns of x to several tensors, and of their gradients back into one.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/layout/column_copy.h"

namespace fuseline::cpu::kernels {

KernelDef split();

namespace {

std::vector<TensorSpec> outputsOf(const CompileRequest& request) {
  std::vector<TensorSpec> specs;
  for (const ValueId output : request.member(0).outputs) specs.push_back(request.graph.value(output).spec);
  return specs;
}

Result<std::unique_ptr<Kernel>> compileSplit(const CompileRequest& request) {
  const bool isForward = request.step.phase == Phase::Forward;
  const Result<Binding> whole =
      requireOperand(request, {0, isForward ? OperandKind::Input : OperandKind::GradInput, 0});
  if (!whole) return whole.error();
  const OperandKind kind = isForward ? OperandKind::Output : OperandKind::GradOutput;
  return makeColumnCopy(*whole, columnPieces(request, kind, outputsOf(request)),
                        isForward ? ColumnCopyDirection::ToPieces : ColumnCopyDirection::FromPieces,
                        request.settings.threads);
}

}  // namespace

KernelDef split() {
  return {
      .name = "Split",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = compileSplit,
  };
}

}  // namespace fuseline::cpu::kernels
