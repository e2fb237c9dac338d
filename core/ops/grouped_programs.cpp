// Writes the programs of biases and of their gradients.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/grouped_programs.h"

namespace fuseline::grouped {

ElementwiseProgram biasProgram(bool isScaled) {
  ElementwiseProgram program;
  program.code = {{.opcode = Opcode::Load, .place = {.operand = kSums}},
                  {.opcode = Opcode::Load, .place = {.operand = kBias, .access = Access::Row}}};
  if (isScaled) {
    program.code.push_back({.opcode = Opcode::Load, .place = {.operand = kScales, .access = Access::Column}});
    program.code.push_back({.opcode = Opcode::Mul, .a = 1, .b = 2});
  }
  const auto bias = static_cast<ValueIndex>(program.code.size()) - 1;
  program.code.push_back({.opcode = Opcode::Add, .a = 0, .b = bias});
  program.stores = {{.value = bias + 1, .place = {.operand = kY}}};
  return program;
}

ElementwiseProgram biasGradProgram(bool isScaled, bool wantsBias, bool wantsScales) {
  ElementwiseProgram program;
  program.code = {{.opcode = Opcode::Load, .place = {.operand = kGradY}}};
  const auto timesGradY = [&](const OperandKey& key, Access access) {
    program.code.push_back({.opcode = Opcode::Load, .place = {.operand = key, .access = access}});
    const auto factor = static_cast<ValueIndex>(program.code.size()) - 1;
    program.code.push_back({.opcode = Opcode::Mul, .a = 0, .b = factor});
    return factor + 1;
  };
  if (wantsBias)
    program.columnSums.push_back({.value = isScaled ? timesGradY(kScales, Access::Column) : 0,
                                  .place = {.operand = kGradBias, .access = Access::Row}});
  if (wantsScales)
    program.rowSums.push_back(
        {.value = timesGradY(kBias, Access::Row), .place = {.operand = kGradScales, .access = Access::Column}});
  return program;
}

}  // namespace fuseline::grouped
