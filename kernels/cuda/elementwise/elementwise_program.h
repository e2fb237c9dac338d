// Converts elementwise programs into device programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/random.h"
#include "core/ops/elementwise.h"
#include "core/support/result.h"
#include "core/tensor/dtype.h"
#include "kernels/cuda/device/program.h"

#include <functional>
#include <vector>

namespace fuseline::cuda {

/// Placeholder for an operand that only numbers elements, for a dropout.
constexpr OperandKey kNoOperand{.member = -1};

/// A program for the device and its operands; their pointers are filled in before each launch.
struct DeviceProgram {
  device::Program program;
  std::vector<OperandPlace> places;  // by operand of the program
  /// Destinations of the sums. With Access::Scalar, column sums are also summed over the columns.
  std::vector<OperandPlace> columnSums;
  std::vector<OperandPlace> rowSums;
};

device::Element elementOf(DType dtype);
device::Dropout deviceMask(const DropoutMask& mask);

/// Values get as few registers as they need. Errors: the program exceeds a limit of device::Program.
Result<DeviceProgram> compileProgram(const ElementwiseProgram& program,
                                     const std::function<DType(const OperandKey&)>& dtypeOf);

}  // namespace fuseline::cuda
