// Compiles programs of passes.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/program_pass.h"

namespace fuseline::cuda {

Result<ProgramPass> ProgramPass::make(const ElementwiseProgram& program, GridSize grid,
                                      const std::function<DType(const OperandKey&)>& dtypeOf,
                                      const DeviceContext& device, bool areOperandsAligned) {
  const Result<DeviceProgram> compiled = compileProgram(program, dtypeOf);
  if (!compiled) return compiled.error();
  const ElementwiseShape shape =
      programShape(*compiled, grid, device.numMultiprocessors, {.areOperandsAligned = areOperandsAligned});
  return ProgramPass(ProgramRunner(*compiled, shape, dtypeOf, device), shape);
}

}  // namespace fuseline::cuda
