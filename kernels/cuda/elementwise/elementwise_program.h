// Turns elementwise programs into what the device interprets.
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

/// Stands in a place that only numbers elements, for a dropout.
constexpr OperandKey kNoOperand{.member = -1};

/// A program for the device, and what its operands are; their pointers are filled in before each launch.
struct DeviceProgram {
  device::Program program;
  std::vector<Place> places;  // by operand of the program
  /// Where the sums go. Of column sums with Access::Scalar the columns are added as well.
  std::vector<Place> columnSums;
  std::vector<Place> rowSums;
};

device::Element elementOf(DType dtype);
device::Dropout deviceMask(const DropoutMask& mask);

/// Values get as few registers as they need. Errors: the program exceeds a limit of device::Program.
Result<DeviceProgram> compileProgram(const ElementwiseProgram& program,
                                     const std::function<DType(const OperandKey&)>& dtypeOf);

}  // namespace fuseline::cuda
