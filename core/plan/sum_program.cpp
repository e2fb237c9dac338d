// Sums as elementwise programs.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/sum_program.h"

namespace fuseline {

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

}  // namespace fuseline
