// Runs an elementwise program, compiled or interpreted, and finishes its sums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/elementwise/elementwise_source.h"
#include "kernels/cuda/kernel_def.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace fuseline::cuda {

struct GridSize {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

struct ShapeOptions {
  /// No more blocks than keep the device busy, as with column sums.
  bool findsAmax = false;
  /// Operands begin where a packet may.
  bool areOperandsAligned = true;
  /// Blocks that a multiprocessor runs at once, where an amax is found; programs with column sums have a number of
  /// their own.
  int blocksAtOnce = DeviceFill::kBlocksWithSums;
};

/// How the grid of a program is spread: packets where all operands keep them together, one row where no element needs
/// to know its own.
ElementwiseShape programShape(const DeviceProgram& program, GridSize grid, int numMultiprocessors,
                              const ShapeOptions& options = {});

/// One program, on grids of one width.
class ProgramRunner {
 public:
  /// tallest: of the shapes that it will run on. dtypeOf: of every operand that the program names. handed: what is
  /// made of a result besides; only compiled programs do it, copies on a tileShape().
  ProgramRunner(const DeviceProgram& program, const ElementwiseShape& tallest,
                const std::function<DType(const OperandKey&)>& dtypeOf, const DeviceContext& device,
                const HandedResult* handed = nullptr);

  bool isCompiled() const { return m_compiled != nullptr; }
  int blocksAtOnce() const { return m_compiled ? m_compiled->blocksAtOnce() : DeviceFill::kBlocksWithSums; }

  /// What the program reads and writes, then its column sums, then its row sums. Some may be kNoOperand.
  const std::vector<OperandKey>& operands() const { return m_operands; }

  std::size_t workspaceBytes(const ElementwiseShape& shape) const;

  /// Where the next runs write what they make of a result.
  void setHandOver(const device::HandOver& handOver) { m_arguments.handOver = handOver; }
  /// memory: of each of the operands; nullptr for a sum: nobody wants it.
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
