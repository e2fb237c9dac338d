// Runs an elementwise program, compiled or interpreted, and finishes its sums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/elementwise_step.h"
#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/elementwise/elementwise_source.h"
#include "kernels/cuda/kernel_def.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace fuseline::cuda {

struct ShapeOptions {
  /// No more blocks than keep the device busy, as with column sums.
  bool findsAmax = false;
  /// Operands begin where a packet may.
  bool areOperandsAligned = true;
  /// Blocks that a multiprocessor runs at once, where an amax is computed; programs with column sums have their own
  /// number.
  int blocksAtOnce = DeviceFill::kBlocksWithSums;
};

/// Shape of a program's grid: packets if all operands keep them together, a single row if no element needs its row
/// index.
ElementwiseShape programShape(const DeviceProgram& program, GridSize grid, int numMultiprocessors,
                              const ShapeOptions& options = {});

/// One program, on grids of one width.
class ProgramRunner {
 public:
  /// tallest: the tallest shape that it will run on. dtypeOf: dtype of every operand that the program names. handed:
  /// fused quantization of a result; only compiled programs support it, quantized tensors on a tileShape().
  ProgramRunner(const DeviceProgram& program, const ElementwiseShape& tallest,
                const std::function<DType(const OperandKey&)>& dtypeOf, const DeviceContext& device,
                const HandedResult* handed = nullptr);

  bool isCompiled() const { return m_compiled != nullptr; }
  int blocksAtOnce() const { return m_compiled ? m_compiled->blocksAtOnce() : DeviceFill::kBlocksWithSums; }

  /// The inputs and outputs of the program, then its column sums, then its row sums. Some may be kNoOperand.
  const std::vector<OperandKey>& operands() const { return m_operands; }

  std::size_t workspaceBytes(const ElementwiseShape& shape) const;

  /// Sets the destination of the quantized output of the next runs.
  void setQuantizedOutputs(const device::QuantizedOutputs& quantizedOutputs) {
    m_arguments.quantizedOutputs = quantizedOutputs;
  }
  /// memory: of each operand; nullptr for a sum that is not requested.
  void run(const ElementwiseShape& shape, std::span<std::byte* const> memory, std::byte* workspace, Stream stream);

 private:
  void launch(const ElementwiseShape& shape, std::span<std::byte* const> memory, float* columnParts, Stream stream);
  PartSums columnSums(const ElementwiseShape& shape, std::size_t sum, const float* parts) const;
  PartSums rowSums(const ElementwiseShape& shape, std::size_t sum, const float* parts) const;

  device::Program m_program;
  device::Arguments m_arguments = {};
  std::shared_ptr<const CompiledProgram> m_compiled;  // null: the program is interpreted
  std::vector<OperandKey> m_operands;
  std::vector<device::Operand> m_columnSums;
  std::vector<device::Operand> m_rowSums;
};

}  // namespace fuseline::cuda
