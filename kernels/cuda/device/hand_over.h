// The copies that linear ops read of a result, written by the kernel that makes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/block_codes.h"
#include "kernels/cuda/device/elementwise.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// Raises an amax to the largest magnitude of a patch's threads. NaN does not count. All threads of the block call it.
inline __device__ void raiseAmax(float* amax, const float (&x)[kPatch][kPatch]) {
  float largest = 0.0f;
#pragma unroll
  for (int row = 0; row < kPatch; ++row) {
#pragma unroll
    for (int col = 0; col < kPatch; ++col) largest = largerOf(fabsf(x[row][col]), largest);
  }
  raiseAmax(amax, largest, static_cast<int>(threadIdx.y * kTilePatches + threadIdx.x));
}

/// With the scale that is known beforehand.
inline __device__ void quantizeByTensor(TileMemory& shared, const CopyPair& pair, const MatrixSize& size,
                                        const PatchPlace& place, const float (&x)[kPatch][kPatch]) {
  const float scale = *pair.scale;
  const bool isFirst = place.row == 0 && place.col == 0;
  if (pair.rowwise.codes) {
    if (isFirst) *static_cast<float*>(pair.rowwise.scales) = 1.0f / scale;
    storeRows(pair.rowwise.codes, size.cols, place, pair.rowwise.code, x, [&](int, int) { return scale; });
  }
  if (pair.columnwise.codes) {
    if (isFirst) *static_cast<float*>(pair.columnwise.scales) = 1.0f / scale;
    float multipliers[kPatch];
    fill<kPatch>(scale, multipliers);
    storeTransposed(shared.transposed, pair.columnwise.codes, size.rows, size.endCol, place, pair.columnwise.code, x,
                    multipliers);
  }
  if (pair.amax) raiseAmax(pair.amax, x);
}

template <CopyKind kKind>
__device__ void writeCopies(TileMemory& shared, const HandOver& handOver, const MatrixSize& size,
                            const PatchPlace& place, const float (&x)[kPatch][kPatch]) {
  for (int i = 0; i < handOver.numPairs; ++i) {
    const CopyPair& pair = handOver.pairs[i];
    if constexpr (kKind == CopyKind::Tensor)
      quantizeByTensor(shared, pair, size, place, x);
    else
      quantizePatch<kKind>(shared, {pair.rowwise, pair.columnwise}, size, place, x);
    __syncthreads();
  }
}

/// Where the rows of a patch wait, rounded, until all are there: in shared memory, which leaves registers to what makes
/// them. A thread takes what it put.
template <Element kElement>
class PatchRows {
 public:
  static constexpr int kRowsAtOnce = 2;
  struct Memory {
    Packet<typename Codec<kElement>::Bits, kPatch> packets[kPatch][kTileThreads];
  };
  explicit __device__ PatchRows(Memory& memory) : m_memory(memory) {}

  __device__ void put(int row, const float (&values)[kPatch]) {
    storeElements<kElement, kPatch>(&packet(row), 0, kPatch, values);
  }
  __device__ void take(float (&x)[kPatch][kPatch]) const {
#pragma unroll
    for (int row = 0; row < kPatch; ++row) loadElements<kElement, kPatch>(&packet(row), 0, kPatch, x[row]);
  }

 private:
  __device__ auto& packet(int row) const { return m_memory.packets[row][threadIdx.y * kTilePatches + threadIdx.x]; }

  Memory& m_memory;
};

/// Float32 would take more shared memory than a block has: registers must do.
template <>
class PatchRows<Element::F32> {
 public:
  static constexpr int kRowsAtOnce = kPatch;
  struct Memory {};
  explicit __device__ PatchRows(Memory&) {}

  __device__ void put(int row, const float (&values)[kPatch]) {
#pragma unroll
    for (int v = 0; v < kPatch; ++v) m_x[row][v] = values[v];
  }
  __device__ void take(float (&x)[kPatch][kPatch]) const {
#pragma unroll
    for (int row = 0; row < kPatch; ++row) {
#pragma unroll
      for (int v = 0; v < kPatch; ++v) x[row][v] = m_x[row][v];
    }
  }

 private:
  float m_x[kPatch][kPatch];
};

template <Element kElement>
union WalkMemory {
  typename PatchRows<kElement>::Memory rows;
  TileMemory tile;
};

/// Walks over tiles of 128 x 128. Evaluator: as walkGrid's, but evaluate<kLane>() also gives the values of one of the
/// kLanes lanes of the result that is quantized; what else it makes it makes with the last lane.
template <CopyKind kKind, Element kElement, class Evaluator>
class TileWalk {
 public:
  __device__ TileWalk(WalkMemory<kElement>& shared, Evaluator& evaluator, const Grid& grid, float* columnParts,
                      float* rowParts)
      : m_shared(shared), m_evaluator(evaluator), m_grid(grid), m_columnParts(columnParts), m_rowParts(rowParts) {}

  /// A thread has registers for one patch: each lane reads its operands again, from the cache. The lanes share the code
  /// that quantizes.
  __device__ void walk(std::int64_t tile, const HandOver& handOver) {
    const PatchPlace place = patchPlace(tile, blockIdx.x, m_grid.rows, m_grid.cols);
#pragma unroll 1
    for (int lane = 0; lane < Evaluator::kLanes; ++lane) {
      PatchRows<kElement> rows(m_shared.rows);
      if (lane + 1 == Evaluator::kLanes)
        evaluateLast(rows, place, tile);
      else
        evaluate<0>(rows, place, [](const Position&, bool) {});
      float x[kPatch][kPatch];
      rows.take(x);
      __syncthreads();  // their memory is used again
      PatchPlace inResult = place;
      inResult.col += lane * m_grid.cols;
      writeCopies<kKind>(m_shared.tile, handOver,
                         {m_grid.rows, Evaluator::kLanes * m_grid.cols, (lane + 1) * m_grid.cols}, inResult, x);
    }
  }

 private:
  static_assert(Evaluator::kLanes <= 2);
  static constexpr int kMaxColumnSums = Evaluator::kMaxColumnSums > 0 ? Evaluator::kMaxColumnSums : 1;
  static constexpr int kRowsAtOnce = PatchRows<kElement>::kRowsAtOnce;

  /// thenSum(at, isActive): called by all threads of a row.
  template <int kLane, class ThenSum>
  __device__ void evaluate(PatchRows<kElement>& rows, const PatchPlace& place, const ThenSum& thenSum) {
#pragma unroll kRowsAtOnce
    for (int row = 0; row < kPatch; ++row) {
      const Position at{place.row + row, place.col, kPatch};
      const bool isActive = row < place.numRows && place.numCols > 0;
      float values[kPatch] = {};
      if (isActive) m_evaluator.template evaluate<kLane>(m_grid, at, values);
      rows.put(row, values);
      thenSum(at, isActive);
    }
  }

  __device__ void evaluateLast(PatchRows<kElement>& rows, const PatchPlace& place, std::int64_t tile) {
    float sums[kMaxColumnSums][kPatch] = {};
    evaluate<Evaluator::kLanes - 1>(rows, place, [&](const Position& at, bool isActive) {
      addColumns(sums, isActive);
      sumRows(at, isActive);
    });
    const bool isFirst = tile == blockIdx.y;
    for (int s = 0; s < m_evaluator.numColumnSums(); ++s)
      writeColumnPart<kPatch>(sums[s], m_grid, place.col, m_columnParts + s * gridDim.y * m_grid.cols, isFirst);
  }

  __device__ void addColumns(float (&sums)[kMaxColumnSums][kPatch], bool isActive) const {
    for (int s = 0; s < m_evaluator.numColumnSums(); ++s)
      for (int v = 0; v < kPatch; ++v)
        if (isActive) sums[s][v] += m_evaluator.columnSum(s)[v];
  }

  __device__ void sumRows(const Position& at, bool isActive) const {
    for (int s = 0; s < m_evaluator.numRowSums(); ++s) {
      float sum = 0.0f;
      for (int v = 0; v < kPatch; ++v)
        if (isActive) sum += m_evaluator.rowSum(s)[v];
      sum = sumOverLanes(sum, kTilePatches);
      if (at.row < m_grid.rows && threadIdx.x == 0)
        m_rowParts[(s * m_grid.rows + at.row) * gridDim.x + blockIdx.x] = sum;
    }
  }

  WalkMemory<kElement>& m_shared;
  Evaluator& m_evaluator;
  const Grid& m_grid;
  float* m_columnParts;
  float* m_rowParts;
};

/// As walkGrid, by tiles; one result of dtype kElement, which has the grid's columns kLanes times side by side, is
/// quantized. The grid has a multiple of kPatch columns. columnParts: as in walkGrid; rowParts:
/// [numRowSums][rows][gridDim.x].
template <CopyKind kKind, Element kElement, class Evaluator>
__device__ void walkTiles(Evaluator& evaluator, const Grid& grid, const HandOver& handOver, float* columnParts,
                          float* rowParts) {
  __shared__ WalkMemory<kElement> shared;
  TileWalk<kKind, kElement, Evaluator> walk(shared, evaluator, grid, columnParts, rowParts);
  const std::int64_t tiles = (grid.rows + kTileSide - 1) / kTileSide;
  for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) walk.walk(tile, handOver);
}

}  // namespace fuseline::cuda::device
