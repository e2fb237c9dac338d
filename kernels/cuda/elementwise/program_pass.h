// ProgramPass: an elementwise program over a matrix, as one of the launches of a kernel with several.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/elementwise/program_runner.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace fuseline::cuda {

class ProgramPass {
 public:
  /// Errors: the program exceeds a limit of device::Program.
  static Result<ProgramPass> make(const ElementwiseProgram& program, GridSize grid,
                                  const std::function<DType(const OperandKey&)>& dtypeOf, const DeviceContext& device,
                                  bool areOperandsAligned = true);

  std::size_t workspaceBytes() const { return m_runner.workspaceBytes(m_shape); }

  /// memoryOf: memory of the operand with this key; nullptr for a sum that is not requested.
  template <class MemoryOf>
  void run(const MemoryOf& memoryOf, std::byte* workspace, Stream stream) {
    std::ranges::transform(m_runner.operands(), m_memory.begin(), memoryOf);
    m_runner.run(m_shape, m_memory, workspace, stream);
  }

 private:
  ProgramPass(ProgramRunner runner, const ElementwiseShape& shape)
      : m_runner(std::move(runner)), m_shape(shape), m_memory(m_runner.operands().size()) {}

  ProgramRunner m_runner;
  ElementwiseShape m_shape;
  std::vector<std::byte*> m_memory;  // of the operands, in one call
};

}  // namespace fuseline::cuda
