// Launches a program, then a pass for each of its sums.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/program_runner.h"

#include <algorithm>

namespace fuseline::cuda {

namespace {

bool hasElements(const ElementwiseShape& shape) { return shape.grid.rows > 0 && shape.grid.cols > 0; }

std::shared_ptr<const CompiledProgram> compiledProgram(const device::Program& program, const ElementwiseShape& shape,
                                                       const DeviceContext& device, const HandedResult* handed) {
  if (!device.programs || !hasElements(shape)) return nullptr;
  auto compiled = device.programs->compile(sourceOf(program, shape, handed));
  return compiled ? *compiled : nullptr;
}

/// Do rows follow each other without any element knowing in which row it is?
bool isContiguous(const DeviceProgram& program) {
  return program.columnSums.empty() && program.rowSums.empty() &&
         std::ranges::all_of(program.places, [](const OperandPlace& place) {
           return place.access == Access::Scalar || (place.access == Access::Full && place.lanes == 1);
         });
}

bool hasOneLane(const OperandPlace& place) { return place.lanes == 1; }

/// Packets of columns have to be together in every operand. Rows that have whole packets begin at aligned addresses.
Packing packingOf(const DeviceProgram& program, const GridSize& grid, bool areOperandsAligned) {
  const auto areAll = [&](const auto& condition) { return std::ranges::all_of(program.places, condition); };
  if (grid.rows == 1 && areOperandsAligned && areAll(hasOneLane)) return Packing::Packets;
  if (grid.cols % kVectorWidth == 0)
    return areAll([](const OperandPlace& place) { return place.interleave % kVectorWidth == 0; }) ? Packing::Packets
                                                                                                  : Packing::None;
  const bool isInPieces = !areAll([](const OperandPlace& place) { return hasOneLane(place) || place.interleave == 0; });
  return areOperandsAligned && !isInPieces ? Packing::ShiftedPackets : Packing::None;
}

device::Operand operandOf(const OperandPlace& place, DType dtype) {
  return {.interleave = place.interleave,
          .element = elementOf(dtype),
          .access = static_cast<device::Access>(place.access),
          .lane = static_cast<std::uint8_t>(place.lane),
          .lanes = static_cast<std::uint8_t>(place.lanes)};
}

bool isScalar(const device::Operand& operand) { return operand.access == device::Access::Scalar; }

/// Sums the columns of a scalar's parts with many blocks; one block then sums the remaining parts.
PartSums launchColumnsOf(const PartSums& scalar, float* columns, Stream stream) {
  PartSums sums = scalar;
  sums.to = operandOf({.access = Access::Row}, DType::F32);
  sums.to.data = reinterpret_cast<std::byte*>(columns);
  launchPartSums(sums, stream);
  return {.parts = columns, .items = 1, .terms = scalar.cols, .to = scalar.to, .cols = scalar.cols};
}

}  // namespace

ElementwiseShape programShape(const DeviceProgram& program, GridSize grid, int numMultiprocessors,
                              const ShapeOptions& options) {
  if (isContiguous(program) && !options.findsAmax && options.areOperandsAligned)
    grid = {.rows = std::min<std::int64_t>(grid.rows, 1), .cols = grid.rows * grid.cols};
  DeviceFill device{.numMultiprocessors = numMultiprocessors};
  if (program.columnSums.empty()) device.blocksAtOnce = options.blocksAtOnce;
  return elementwiseShape(grid.rows, grid.cols, packingOf(program, grid, options.areOperandsAligned),
                          options.findsAmax || !program.columnSums.empty(), device);
}

ProgramRunner::ProgramRunner(const DeviceProgram& program, const ElementwiseShape& tallest,
                             const std::function<DType(const OperandKey&)>& dtypeOf, const DeviceContext& device,
                             const HandedResult* handed)
    : m_program(program.program), m_compiled(compiledProgram(program.program, tallest, device, handed)) {
  std::ranges::copy(m_program.dropouts, m_arguments.dropouts);
  for (const OperandPlace& place : program.places) m_operands.push_back(place.operand);
  const auto addSums = [&](const std::vector<OperandPlace>& places, std::vector<device::Operand>& sums) {
    for (const OperandPlace& place : places) {
      m_operands.push_back(place.operand);
      sums.push_back(operandOf(place, dtypeOf(place.operand)));
    }
  };
  addSums(program.columnSums, m_columnSums);
  addSums(program.rowSums, m_rowSums);
}

std::size_t ProgramRunner::workspaceBytes(const ElementwiseShape& shape) const {
  const std::int64_t scalarTerms = std::ranges::any_of(m_columnSums, isScalar) ? shape.grid.cols : 0;
  return static_cast<std::size_t>(numColumnParts(m_program, shape) + numRowParts(m_program, shape) + scalarTerms) *
         sizeof(float);
}

void ProgramRunner::run(const ElementwiseShape& shape, std::span<std::byte* const> memory, std::byte* workspace,
                        Stream stream) {
  auto* const columnParts = reinterpret_cast<float*>(workspace);
  if (hasElements(shape)) launch(shape, memory, columnParts, stream);
  const float* const rowParts = columnParts + numColumnParts(m_program, shape);
  float* const scalarTerms = columnParts + numColumnParts(m_program, shape) + numRowParts(m_program, shape);
  const auto finish = [&](PartSums sums, std::byte* to) {
    if (!to) return;
    sums.to.data = to;
    if (isScalar(sums.to)) sums = launchColumnsOf(sums, scalarTerms, stream);
    launchPartSums(sums, stream);
  };
  memory = memory.subspan(static_cast<std::size_t>(m_program.numOperands));
  for (std::size_t s = 0; s < m_columnSums.size(); ++s) finish(columnSums(shape, s, columnParts), memory[s]);
  memory = memory.subspan(m_columnSums.size());
  for (std::size_t s = 0; s < m_rowSums.size(); ++s) finish(rowSums(shape, s, rowParts), memory[s]);
}

void ProgramRunner::launch(const ElementwiseShape& shape, std::span<std::byte* const> memory, float* columnParts,
                           Stream stream) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(m_program.numOperands); ++i)
    m_arguments.data[i] = m_program.operands[i].data = memory[i];
  float* const rowParts = columnParts + numColumnParts(m_program, shape);
  if (m_compiled) return m_compiled->launch(m_arguments, shape, columnParts, rowParts, stream);
  launchProgram(m_program, shape, columnParts, stream);
}

PartSums ProgramRunner::columnSums(const ElementwiseShape& shape, std::size_t sum, const float* parts) const {
  const std::int64_t cols = shape.grid.cols;
  return {.parts = parts + static_cast<std::int64_t>(sum) * shape.blocksY * cols,
          .items = cols,
          .terms = hasElements(shape) ? shape.blocksY : 0,
          .termStride = cols,
          .to = m_columnSums[sum],
          .cols = cols};
}

PartSums ProgramRunner::rowSums(const ElementwiseShape& shape, std::size_t sum, const float* parts) const {
  const std::int64_t rows = shape.grid.rows;
  const std::int64_t groups = shape.rowGroups();
  return {.parts = parts + static_cast<std::int64_t>(sum) * rows * groups,
          .items = rows,
          .itemStride = groups,
          .terms = hasElements(shape) ? groups : 0,
          .to = m_rowSums[sum],
          .cols = rows};
}

}  // namespace fuseline::cuda
