// The copies that linear ops read of a result, written by the kernel that makes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/block_codes.h"
#include "kernels/cuda/device/elementwise.h"
#include "kernels/cuda/device/waiting_patch.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// With the scale that is known beforehand.
template <class Patch>
__device__ void quantizeByTensor(TileMemory& shared, const CopyPair& pair, const MatrixSize& size,
                                 const PatchPlace& place, const Patch& patch) {
  const float scale = *pair.scale;
  float multipliers[kPatch];
  fill<kPatch>(scale, multipliers);
  const bool isFirst = place.row == 0 && place.col == 0;
  if (pair.rowwise.codes) {
    if (isFirst) *static_cast<float*>(pair.rowwise.scales) = 1.0f / scale;
    storeRows(pair.rowwise.codes, size.cols, place, pair.rowwise.code, patch, multipliers);
  }
  if (pair.columnwise.codes) {
    if (isFirst) *static_cast<float*>(pair.columnwise.scales) = 1.0f / scale;
    storeTransposed(shared.transposed, pair.columnwise.codes, size.rows, size.endCol, place, pair.columnwise.code,
                    patch, multipliers);
  }
  if (pair.amax) raiseAmax(pair.amax, largestOfPatch(patch), tileThread());
}

template <CopyKind kKind, class Patch>
__device__ void writeCopies(TileMemory& shared, const HandOver& handOver, const MatrixSize& size,
                            const PatchPlace& place, const Patch& patch) {
  for (int i = 0; i < handOver.numPairs; ++i) {
    const CopyPair& pair = handOver.pairs[i];
    if constexpr (kKind == CopyKind::Tensor)
      quantizeByTensor(shared, pair, size, place, patch);
    else
      quantizePatch<kKind>(shared, {pair.rowwise, pair.columnwise}, size, place, patch);
    __syncthreads();
  }
}

/// What the tiles of one lane of a result become with scales that are known beforehand: the rows of a patch are coded
/// at once, and only what is to be transposed waits.
class TensorCodes {
 public:
  /// element: to which the result is rounded first, if it is. memory: WaitingCodes::kTileBytes for every pair.
  __device__ TensorCodes(Element element, const HandOver& handOver, const MatrixSize& size, void* memory)
      : m_element(element), m_handOver(handOver), m_size(size), m_memory(static_cast<char*>(memory)) {}

  /// largest: the largest magnitude so far, which is raised
  __device__ void put(const PatchPlace& place, int row, float (&values)[kPatch], float& largest) const {
    if (!m_handOver.isUnrounded) roundTo(m_element, values);
    largest = largerOf(largestOfRow(values), largest);
#pragma unroll 1
    for (int i = 0; i < m_handOver.numPairs; ++i) put(m_handOver.pairs[i], waiting(i), place, row, values);
  }

  /// All threads of the block call it, when all rows of the tile are there.
  __device__ void transpose(TransposedTile& shared, const PatchPlace& place) const {
#pragma unroll 1
    for (int i = 0; i < m_handOver.numPairs; ++i) {
      const CodedCopy& copy = m_handOver.pairs[i].columnwise;
      if (!copy.codes) continue;
      CodePacket packets[kPatch];
      waiting(i).take(packets);
      storeTransposed(shared, copy.codes, m_size.rows, m_size.endCol, place, packets);
    }
  }

 private:
  __device__ WaitingCodes waiting(int pair) const { return WaitingCodes(m_memory + pair * WaitingCodes::kTileBytes); }

  __device__ void put(const CopyPair& pair, const WaitingCodes& waiting, const PatchPlace& place, int row,
                      const float (&values)[kPatch]) const {
    const float scale = *pair.scale;
    const bool isFirst = row == 0 && place.row == 0 && place.col == 0;
    float multipliers[kPatch];
    fill<kPatch>(scale, multipliers);
    if (pair.rowwise.codes) {
      if (isFirst) *static_cast<float*>(pair.rowwise.scales) = 1.0f / scale;
      storeRow(pair.rowwise.codes, m_size.cols, place, row, encodePacket(values, multipliers, pair.rowwise.code));
    }
    if (pair.columnwise.codes) {
      if (isFirst) *static_cast<float*>(pair.columnwise.scales) = 1.0f / scale;
      waiting.put(row, encodePacket(values, multipliers, pair.columnwise.code));
    }
  }

  Element m_element;
  const HandOver& m_handOver;
  MatrixSize m_size;
  char* m_memory;
};

/// Walks over tiles of 128 x 128. Evaluator: as walkGrid's, but evaluate() also gives the values of the kLanes lanes of
/// the result that is quantized. They wait in `memory`: kLanes * WaitingPatch<kElement>::kTileBytes; with the scale of
/// a tensor only their codes do: kLanes * numPairs * WaitingCodes::kTileBytes.
template <CopyKind kKind, Element kElement, class Evaluator>
class TileWalk {
 public:
  __device__ TileWalk(void* memory, TileMemory& shared, Evaluator& evaluator, const Grid& grid, float* columnParts,
                      float* rowParts)
      : m_memory(static_cast<char*>(memory)),
        m_shared(shared),
        m_evaluator(evaluator),
        m_grid(grid),
        m_columnParts(columnParts),
        m_rowParts(rowParts) {}

  __device__ void walk(std::int64_t tile, const HandOver& handOver) {
    const PatchPlace place = patchPlace(tile, blockIdx.x, m_grid.rows, m_grid.cols);
    float largest = 0.0f;
    evaluate(place, tile, handOver, largest);
#pragma unroll 1
    for (int lane = 0; lane < kLanes; ++lane) {
      if constexpr (kKind == CopyKind::Tensor)
        codes(lane, handOver).transpose(m_shared.transposed, inResult(place, lane));
      else
        writeCopies<kKind>(m_shared, handOver, sizeOf(lane), inResult(place, lane), waiting(lane));
    }
    if constexpr (kKind == CopyKind::Tensor) raiseAmaxes(handOver, largest);
  }

 private:
  using Loads = typename Evaluator::Loads;
  static constexpr int kLanes = Evaluator::kLanes;
  static constexpr int kMaxColumnSums = Evaluator::kMaxColumnSums > 0 ? Evaluator::kMaxColumnSums : 1;
  /// So many that a thread has 48 bytes or more under way: two blocks keep a multiprocessor's memory busy.
  static constexpr int kRowsAtOnce = sizeof(Loads) <= 16 ? 4 : (sizeof(Loads) <= 32 ? 2 : 1);

  __device__ MatrixSize sizeOf(int lane) const { return {m_grid.rows, kLanes * m_grid.cols, (lane + 1) * m_grid.cols}; }
  __device__ PatchPlace inResult(PatchPlace place, int lane) const {
    place.col += lane * m_grid.cols;
    return place;
  }
  __device__ WaitingPatch<kElement> waiting(int lane) const {
    return WaitingPatch<kElement>(m_memory + lane * WaitingPatch<kElement>::kTileBytes);
  }
  __device__ TensorCodes codes(int lane, const HandOver& handOver) const {
    return TensorCodes(kElement, handOver, sizeOf(lane),
                       m_memory + lane * handOver.numPairs * WaitingCodes::kTileBytes);
  }

  static __device__ void raiseAmaxes(const HandOver& handOver, float largest) {
    if (!handOver.pairs[0].amax) return;  // all have one, or none
    largest = largestOfBlock(largest, tileThread());
#pragma unroll 1
    for (int i = 0; i < handOver.numPairs; ++i)
      if (float* const amax = handOver.pairs[i].amax) raiseTo(amax, largest, tileThread());
  }

  __device__ void evaluate(const PatchPlace& place, std::int64_t tile, const HandOver& handOver, float& largest) {
    float sums[kMaxColumnSums][kPatch] = {};
#pragma unroll 1
    for (int first = 0; first < kPatch; first += kRowsAtOnce) {
      Loads loads[kRowsAtOnce];
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i)
        if (isInside(place, first + i)) m_evaluator.request(m_grid, positionOf(place, first + i), loads[i]);
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) evaluateRow(place, first + i, loads[i], sums, handOver, largest);
    }
    const bool isFirst = tile == blockIdx.y;
    for (int s = 0; s < m_evaluator.numColumnSums(); ++s)
      writeColumnPart<kPatch>(sums[s], m_grid, place.col, m_columnParts + s * gridDim.y * m_grid.cols, isFirst);
  }

  static __device__ bool isInside(const PatchPlace& place, int row) { return row < place.numRows && place.numCols > 0; }
  static __device__ Position positionOf(const PatchPlace& place, int row) {
    return {place.row + row, place.col, kPatch};
  }

  __device__ void evaluateRow(const PatchPlace& place, int row, const Loads& loads,
                              float (&sums)[kMaxColumnSums][kPatch], const HandOver& handOver, float& largest) {
    const Position at = positionOf(place, row);
    const bool isActive = isInside(place, row);
    float values[kLanes][kPatch] = {};
    if (isActive) m_evaluator.evaluate(m_grid, at, loads, values);
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      if constexpr (kKind == CopyKind::Tensor)
        codes(lane, handOver).put(inResult(place, lane), row, values[lane], largest);
      else
        waiting(lane).put(row, values[lane]);
    }
    addColumns(sums, isActive);
    sumRows(at, isActive);
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

  char* m_memory;
  TileMemory& m_shared;
  Evaluator& m_evaluator;
  const Grid& m_grid;
  float* m_columnParts;
  float* m_rowParts;
};

/// As walkGrid, by tiles; one result of dtype kElement, which has the grid's columns kLanes times side by side, is
/// quantized. The grid has a multiple of kPatch columns. columnParts: as in walkGrid; rowParts:
/// [numRowSums][rows][gridDim.x]. The launch gives the shared memory in which lanes wait.
template <CopyKind kKind, Element kElement, class Evaluator>
__device__ void walkTiles(Evaluator& evaluator, const Grid& grid, const HandOver& handOver, float* columnParts,
                          float* rowParts) {
  FUSELINE_DYNAMIC_SHARED(memory);
  __shared__ TileMemory shared;
  TileWalk<kKind, kElement, Evaluator> walk(memory, shared, evaluator, grid, columnParts, rowParts);
  const std::int64_t tiles = (grid.rows + kTileSide - 1) / kTileSide;
  for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) walk.walk(tile, handOver);
}

}  // namespace fuseline::cuda::device
