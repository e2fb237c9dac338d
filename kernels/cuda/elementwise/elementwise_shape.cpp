// Chooses blocks for elementwise programs.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/scaling.h"
#include "kernels/cuda/elementwise/elementwise_launch.h"

#include <algorithm>

namespace fuseline::cuda {

namespace {

/// Without sums a thread processes at most this number of rows, and computes its addresses once; fewer rows if a
/// multiprocessor would otherwise have fewer than kFewBlocks blocks.
constexpr std::int64_t kRowsPerThread = 4;
constexpr std::int64_t kFewBlocks = 2;
constexpr std::int64_t kMaxBlocksY = 65535;

unsigned threadsFor(std::int64_t columns, unsigned most) {
  unsigned threads = 1;
  while (threads < most && threads < columns) threads *= 2;
  return threads;
}

/// Shifted rows: the number of rows that a block has at a time is a multiple of kVectorWidth, so that the rows of a
/// thread begin at the same place of a packet; and one thread more than the columns need.
void shareColumns(ElementwiseShape& shape, std::int64_t columns) {
  const unsigned more = shape.isShifted ? 1 : 0;
  shape.threadsX =
      threadsFor(columns + more, shape.isShifted ? device::kBlockThreads / kVectorWidth : device::kBlockThreads);
  shape.blocksX = static_cast<unsigned>(ceilDiv(columns, shape.threadsX - more));
}

/// Number of vertical blocks where parts are read again: no more than run at once.
std::int64_t enoughBlocks(const ElementwiseShape& shape, const DeviceFill& device) {
  return std::max<std::int64_t>(std::int64_t{device.blocksAtOnce} * device.numMultiprocessors / shape.blocksX, 1);
}

std::int64_t rowsPerThread(const ElementwiseShape& shape, int numMultiprocessors) {
  const std::int64_t blocks = ceilDiv(shape.grid.rows, shape.threadsY()) * shape.blocksX;
  return std::clamp<std::int64_t>(blocks / (kFewBlocks * numMultiprocessors), 1, kRowsPerThread);
}

std::int64_t rowsPerBlock(const ElementwiseShape& shape, bool hasColumnSums, const DeviceFill& device) {
  const std::int64_t rows = shape.grid.rows;
  const std::int64_t step = shape.threadsY();
  const std::int64_t walked = hasColumnSums ? ceilDiv(rows, enoughBlocks(shape, device))
                                            : step * rowsPerThread(shape, device.numMultiprocessors);
  return ceilDiv(std::max(walked, ceilDiv(rows, kMaxBlocksY)), step) * step;
}

}  // namespace

std::int64_t ElementwiseShape::rowGroups() const {
  const std::int64_t width = std::min<unsigned>(threadsX, device::kWarpLanes);
  return std::int64_t{blocksX} * threadsX / width;
}

ElementwiseShape elementwiseShape(std::int64_t rows, std::int64_t cols, Packing packing, bool hasColumnSums,
                                  const DeviceFill& device) {
  ElementwiseShape shape{.grid = {.rows = rows, .cols = cols},
                         .vector = packing == Packing::None ? 1 : kVectorWidth,
                         .isShifted = packing == Packing::ShiftedPackets};
  if (rows == 0 || cols == 0) return shape;
  shareColumns(shape, ceilDiv(cols, shape.vector));
  shape.grid.rowsPerBlock = rowsPerBlock(shape, hasColumnSums, device);
  shape.blocksY = static_cast<unsigned>(ceilDiv(rows, shape.grid.rowsPerBlock));
  return shape;
}

ElementwiseShape tileShape(std::int64_t rows, std::int64_t cols, std::size_t waitingBytes) {
  constexpr std::int64_t kTile = 128;
  constexpr unsigned kTileThreadsX = 16;
  ElementwiseShape shape{.grid = {.rows = rows, .cols = cols},
                         .vector = kVectorWidth,
                         .threadsX = kTileThreadsX,
                         .sharedBytes = kTile * kTile * waitingBytes};
  if (rows == 0 || cols == 0) return shape;
  shape.blocksX = static_cast<unsigned>(ceilDiv(cols, kTile));
  shape.blocksY = static_cast<unsigned>(std::min(ceilDiv(rows, kTile), kMaxBlocksY));
  return shape;
}

std::int64_t numColumnParts(const device::Program& program, const ElementwiseShape& shape) {
  return program.numColumnSums * std::int64_t{shape.blocksY} * shape.grid.cols;
}

std::int64_t numRowParts(const device::Program& program, const ElementwiseShape& shape) {
  return program.numRowSums * shape.grid.rows * shape.rowGroups();
}

/// Fewer rows may have more blocks, because a block walks down whole steps.
std::int64_t mostParts(const device::Program& program, const ElementwiseShape& tallest, int numMultiprocessors) {
  const std::int64_t blocks =
      std::min(enoughBlocks(tallest, {numMultiprocessors}), ceilDiv(tallest.grid.rows, tallest.threadsY()));
  return program.numColumnSums * blocks * tallest.grid.cols + numRowParts(program, tallest);
}

}  // namespace fuseline::cuda
