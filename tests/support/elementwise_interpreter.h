// Interprets elementwise programs in double precision: the definition of a program, without a kernel's rounding.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/elementwise.h"

#include <cstdint>
#include <map>
#include <vector>

namespace fuseline::testing {

/// Values by operand, row-major. A Full operand is [rows, lanes * cols], a Row operand [lanes * cols], a
/// Column operand [rows].
using OperandValues = std::map<OperandKey, std::vector<double>>;

/// Runs the program on a grid of rows x cols. Returns the stored results and sums. Throws std::out_of_range when it
/// loads a missing operand.
OperandValues interpret(const ElementwiseProgram& program, std::int64_t rows, std::int64_t cols,
                        const OperandValues& operands);

}  // namespace fuseline::testing
