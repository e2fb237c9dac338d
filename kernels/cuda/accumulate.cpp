// Kernel "accumulate": the sum of the gradients that meet at a branch, in float32, rounded once.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise_step.h"

namespace fuseline::cuda::kernels {

namespace {

ElementwiseProgram sumProgram(const Step& step) {
  ElementwiseProgram program;
  ValueIndex sum = -1;
  const auto emit = [&](const Instruction& instruction) {
    program.code.push_back(instruction);
    return static_cast<ValueIndex>(program.code.size()) - 1;
  };
  for (const StepOperand& operand : step.operands) {
    if (operand.access != OperandAccess::Read) continue;
    const ValueIndex value = emit({.opcode = Opcode::Load, .place = {.operand = operand.key}});
    sum = sum < 0 ? value : emit({.opcode = Opcode::Add, .a = sum, .b = value});
  }
  for (const StepOperand& operand : step.operands)
    if (operand.access == OperandAccess::Write && sum >= 0)
      program.stores.push_back({.value = sum, .place = {.operand = operand.key}});
  return program;
}

}  // namespace

KernelDef accumulate();

KernelDef accumulate() {
  return {
      .name = "accumulate",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = [](const CompileRequest& request) { return makeElementwiseKernel(request, sumProgram(request.step)); },
  };
}

}  // namespace fuseline::cuda::kernels
