// The walk of an elementwise program over its grid, independent of its evaluator: an interpreter or generated code.
//
// A thread has kVector columns of a row; the threads of a block are arranged horizontally (x) and vertically (y), and a
// block walks down rowsPerBlock rows. Sums are accumulated in float32 in a fixed order: a thread's own rows, then the
// threads of the block, then, in a second kernel, the blocks.
//
// Rows may begin in the middle of a packet of memory (kIsShifted). A thread still has a packet, some of whose elements
// may lie in another row, and all its rows begin at the same place of a packet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/elements.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// The elements that a thread works on: `count` columns of a row, but for the `skipped` first ones.
struct Position {
  std::int64_t row = 0;
  std::int64_t col = 0;
  int count = 0;
  int skipped = 0;
};

/// Column of an operand's row that belongs to a column of the grid.
inline __device__ std::int64_t columnOf(const Operand& operand, std::int64_t col, std::int64_t cols) {
  if (operand.interleave == 0) return operand.lane * cols + col;
  return (col / operand.interleave * operand.lanes + operand.lane) * operand.interleave + col % operand.interleave;
}

inline __device__ std::int64_t indexOf(const Operand& operand, const Grid& grid, const Position& at) {
  switch (operand.access) {
    case Access::Full: return at.row * operand.lanes * grid.cols + columnOf(operand, at.col, grid.cols);
    case Access::Row: return columnOf(operand, at.col, grid.cols);
    case Access::Column: return at.row;
    case Access::Scalar: return 0;
  }
  return 0;
}

/// One value for all elements of a thread?
inline __device__ bool isShared(Access access) { return access == Access::Column || access == Access::Scalar; }

/// Does a thread have packets of the operand's memory? With shifted rows those of the tensors as wide as the grid.
template <bool kIsShifted>
__device__ bool hasPackets(const Operand& operand) {
  return !kIsShifted || (operand.access == Access::Full && operand.lanes == 1);
}

template <int kVector, bool kIsShifted = false>
__device__ void loadOperand(const Operand& from, const Grid& grid, const Position& at, float (&out)[kVector]) {
  const std::int64_t index = indexOf(from, grid, at);
  if (isShared(from.access)) return fill<kVector>(loadElement(from.element, from.data, index), out);
  if (hasPackets<kIsShifted>(from))
    return loadElements<kVector>(from.element, from.data, index, at.count, out, at.skipped);
  loadSingly<kVector>(from.element, from.data, index, at.count, out, at.skipped);
}

/// A packet of an operand with different elements in each row, while it is being loaded.
template <Element kElement, int kVector, bool kIsShifted = false>
struct LoadedOperand {
  LoadedPacket<kElement, kVector> packet;
  __device__ void request(const Operand& from, const Grid& grid, const Position& at) {
    const std::int64_t index = indexOf(from, grid, at);
    if (hasPackets<kIsShifted>(from)) return packet.request(from.data, index, at.count, at.skipped);
    packet.requestSingly(from.data, index, at.count, at.skipped);
  }
  __device__ void take(float (&out)[kVector]) const { packet.take(out); }
};

template <int kVector, bool kIsShifted = false>
__device__ void storeOperand(const Operand& to, const Grid& grid, const Position& at, const float (&values)[kVector]) {
  const std::int64_t index = indexOf(to, grid, at);
  if (hasPackets<kIsShifted>(to))
    return storeElements<kVector>(to.element, to.data, index, at.count, values, at.skipped);
  storeSingly<kVector>(to.element, to.data, index, at.count, at.skipped, values);
}

/// Sums over the lanes whose indices differ in the bits below `width`, a power of two up to the warp size. All lanes
/// call it.
inline __device__ float sumOverLanes(float value, int width) {
  for (int offset = 1; offset < width; offset *= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

/// Adds one column sum over the vertically adjacent threads and writes the block's part, a row of grid.cols; or adds to
/// an existing part.
template <int kVector>
__device__ void writeColumnPart(const float (&sums)[kVector], const Grid& grid, std::int64_t col, float* part,
                                bool isFirst = true) {
  __shared__ float shared[kBlockThreads * kVector];
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (int v = 0; v < kVector; ++v) shared[v * kBlockThreads + thread] = sums[v];
  __syncthreads();
  if (threadIdx.y == 0)
    for (int v = 0; v < kVector; ++v) {
      float sum = 0.0f;
      for (unsigned y = 0; y < blockDim.y; ++y)
        sum += shared[v * kBlockThreads + static_cast<int>(y * blockDim.x + threadIdx.x)];
      if (col + v >= grid.cols) continue;
      float& to = part[blockIdx.y * grid.cols + col + v];
      to = isFirst ? sum : to + sum;
    }
  __syncthreads();
}

/// The same for shifted rows: the block has whole packets of columns, and each of its threads the elements of a packet
/// of memory that lie in them.
template <int kVector>
__device__ void writeShiftedColumnPart(const float (&sums)[kVector], const Grid& grid, const Position& at,
                                       float* part) {
  __shared__ float shared[kBlockThreads * kVector];
  const auto width = static_cast<int>(blockDim.x) * kVector;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * (width - kVector);
  for (int v = 0; v < kVector; ++v)
    if (v >= at.skipped && v < at.count)
      shared[static_cast<int>(threadIdx.y) * width + static_cast<int>(at.col - begin) + v] = sums[v];
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (int i = thread; i < width - kVector && begin + i < grid.cols; i += kBlockThreads) {
    float sum = 0.0f;
    for (unsigned y = 0; y < blockDim.y; ++y) sum += shared[static_cast<int>(y) * width + i];
    part[blockIdx.y * grid.cols + begin + i] = sum;
  }
  __syncthreads();
}

/// The columns of the running thread; `row`: its first one. For shifted rows a block has one packet of columns less
/// than threads.
template <int kVector, bool kIsShifted>
__device__ Position columnsOfThread(const Grid& grid, std::int64_t row) {
  const std::int64_t width = kIsShifted ? blockDim.x - 1 : blockDim.x;
  const std::int64_t begin = blockIdx.x * width * kVector;
  const std::int64_t end = begin + width * kVector < grid.cols ? begin + width * kVector : grid.cols;
  const std::int64_t col = begin + threadIdx.x * kVector - (kIsShifted ? row * grid.cols % kVector : 0);
  const std::int64_t left = (kIsShifted ? end : grid.cols) - col;
  return {.row = row,
          .col = col,
          .count = left >= kVector ? kVector : (left > 0 ? static_cast<int>(left) : 0),
          .skipped = kIsShifted && col < begin ? static_cast<int>(begin - col) : 0};
}

/// Evaluator: request(grid, at, loads), evaluate(grid, at, loads), then columnSum(s) and rowSum(s), the values to be
/// summed. `columnParts`: [numColumnSums][gridDim.y][cols]; `rowParts`: [numRowSums][rows][groups], a group being the
/// threads of a row that share a warp.
template <class Evaluator, int kVector, bool kIsShifted = false>
__device__ void walkGrid(Evaluator& evaluator, const Grid& grid, float* columnParts, float* rowParts) {
  constexpr int kMaxColumnSums = Evaluator::kMaxColumnSums;
  float sums[kMaxColumnSums > 0 ? kMaxColumnSums : 1][kVector] = {};
  const std::int64_t first = blockIdx.y * grid.rowsPerBlock;
  Position at = columnsOfThread<kVector, kIsShifted>(grid, first + threadIdx.y);
  const std::int64_t last = first + grid.rowsPerBlock < grid.rows ? first + grid.rowsPerBlock : grid.rows;
  const int width = blockDim.x < kWarpLanes ? static_cast<int>(blockDim.x) : kWarpLanes;
  const std::int64_t numGroups = static_cast<std::int64_t>(gridDim.x) * blockDim.x / width;
  for (std::int64_t base = first; base < last; base += blockDim.y) {
    at.row = base + threadIdx.y;
    const bool isActive = at.row < last && at.count > at.skipped;
    if (isActive) {
      typename Evaluator::Loads loads;
      evaluator.request(grid, at, loads);
      evaluator.evaluate(grid, at, loads);
    }
    for (int s = 0; s < evaluator.numColumnSums(); ++s)
      for (int v = 0; v < kVector; ++v)
        if (isActive && v >= at.skipped && v < at.count) sums[s][v] += evaluator.columnSum(s)[v];
    for (int s = 0; s < evaluator.numRowSums(); ++s) {
      float sum = 0.0f;
      for (int v = 0; v < kVector; ++v)
        if (isActive && v >= at.skipped && v < at.count) sum += evaluator.rowSum(s)[v];
      sum = sumOverLanes(sum, width);
      const std::int64_t group = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / width;
      if (at.row < last && threadIdx.x % width == 0) rowParts[(s * grid.rows + at.row) * numGroups + group] = sum;
    }
  }
  for (int s = 0; s < evaluator.numColumnSums(); ++s) {
    float* const part = columnParts + s * gridDim.y * grid.cols;
    if constexpr (kIsShifted)
      writeShiftedColumnPart<kVector>(sums[s], grid, at, part);
    else
      writeColumnPart<kVector>(sums[s], grid, at.col, part);
  }
}

}  // namespace fuseline::cuda::device
