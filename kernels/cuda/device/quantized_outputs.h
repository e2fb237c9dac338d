// Fused quantization: the quantized tensors that linear ops read, written by the kernel that computes the result.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/block_codes.h"
#include "kernels/cuda/device/elementwise.h"
#include "kernels/cuda/device/waiting_patch.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// With the scale that is known beforehand.
template <class Patch>
__device__ void quantizeByTensor(TileMemory& shared, const CopyPair& pair, float scale, const MatrixSize& size,
                                 const PatchPlace& place, const Patch& patch) {
  const bool isFirst = place.row == 0 && place.col == 0;
  const auto scaled = [&](const CodedCopy& copy) {
    if (copy.codes && isFirst) *static_cast<float*>(copy.scales) = 1.0f / scale;
    return ScaledCopy{copy, scale};
  };
  storeCopies(shared.transposed, scaled(pair.rowwise), scaled(pair.columnwise), size, place, patch);
}

template <CopyKind kKind, class Patch>
__device__ void writeCopies(TileMemory& shared, const QuantizedOutputs& quantizedOutputs, const MatrixSize& size,
                            const PatchPlace& place, const Patch& patch) {
  for (int i = 0; i < quantizedOutputs.numPairs; ++i) {
    const CopyPair& pair = quantizedOutputs.pairs[i];
    if constexpr (kKind == CopyKind::Tensor) {
      quantizeByTensor(shared, pair, *pair.scale, size, place, patch);
      if (pair.amax) raiseAmax(pair.amax, largestOfPatch(patch), tileThread());
    } else {
      quantizePatch<kKind>(shared, {pair.rowwise, pair.columnwise}, size, place, patch);
    }
    __syncthreads();
  }
}

/// Quantizes the tiles of one lane of a result with known scales: the rows of a patch are encoded at once, and only the
/// values to transpose wait in shared memory.
class TensorCodes {
 public:
  /// element: the result is first rounded to it, if at all. firstScale: scale of the first pair. memory:
  /// WaitingCodes::kTileBytes for every pair.
  __device__ TensorCodes(Element element, const QuantizedOutputs& quantizedOutputs, float firstScale,
                         const MatrixSize& size, void* memory)
      : m_element(element),
        m_quantizedOutputs(quantizedOutputs),
        m_firstScale(firstScale),
        m_size(size),
        m_memory(static_cast<char*>(memory)) {}

  /// largest: the largest magnitude so far, which is raised
  __device__ void put(const PatchPlace& place, int row, float (&values)[kPatch], float& largest) const {
    if (!m_quantizedOutputs.isUnrounded) roundTo(m_element, values);
    largest = largerOf(largestOfRow(values), largest);
#pragma unroll 1
    for (int i = 0; i < m_quantizedOutputs.numPairs; ++i) put(i, place, row, values);
  }

  /// All threads of the block call it after all rows of the tile have been put.
  __device__ void transpose(TransposedTile& shared, const PatchPlace& place) const {
#pragma unroll 1
    for (int i = 0; i < m_quantizedOutputs.numPairs; ++i) {
      const CodedCopy& copy = m_quantizedOutputs.pairs[i].columnwise;
      if (!copy.codes) continue;
      CodePacket packets[kPatch];
      waiting(i).take(packets);
      storeTransposed(shared, copy.codes, m_size.rows, m_size.endCol, place, packets);
    }
  }

 private:
  __device__ WaitingCodes waiting(int pair) const { return WaitingCodes(m_memory + pair * WaitingCodes::kTileBytes); }

  /// Quantized tensors with the same encoding are encoded once.
  __device__ void put(int index, const PatchPlace& place, int row, const float (&values)[kPatch]) const {
    const CopyPair& pair = m_quantizedOutputs.pairs[index];
    const float scale = index == 0 ? m_firstScale : *pair.scale;
    const bool isFirst = row == 0 && place.row == 0 && place.col == 0;
    float multipliers[kPatch];
    fill<kPatch>(scale, multipliers);
    CodePacket packet{};
    if (pair.rowwise.codes) {
      if (isFirst) *static_cast<float*>(pair.rowwise.scales) = 1.0f / scale;
      packet = encodePacket(values, multipliers, pair.rowwise.code);
      storeRow(pair.rowwise.codes, m_size.cols, place, row, packet);
    }
    if (pair.columnwise.codes) {
      if (isFirst) *static_cast<float*>(pair.columnwise.scales) = 1.0f / scale;
      const bool isSame = pair.rowwise.codes && pair.rowwise.code == pair.columnwise.code;
      waiting(index).put(row, isSame ? packet : encodePacket(values, multipliers, pair.columnwise.code));
    }
  }

  Element m_element;
  const QuantizedOutputs& m_quantizedOutputs;
  float m_firstScale;
  MatrixSize m_size;
  char* m_memory;
};

/// Walks over tiles of 128 x 128. Evaluator: as walkGrid's, but evaluate() also returns the values of the kLanes lanes
/// of the quantized result. They wait in `memory`: kLanes * WaitingPatch<kElement>::kTileBytes; with one scale per
/// tensor only their encoded values do: kLanes * numPairs * WaitingCodes::kTileBytes.
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

  __device__ void walk(std::int64_t tile, const QuantizedOutputs& quantizedOutputs) {
    const PatchPlace place = patchPlace(tile, blockIdx.x, m_grid.rows, m_grid.cols);
    if constexpr (kKind == CopyKind::Tensor) m_scale = *quantizedOutputs.pairs[0].scale;  // which comes meanwhile
    evaluate(place, tile, quantizedOutputs);
#pragma unroll 1
    for (int lane = 0; lane < kLanes; ++lane) {
      if constexpr (kKind == CopyKind::Tensor)
        codes(lane, quantizedOutputs).transpose(m_shared.transposed, inResult(place, lane));
      else
        writeCopies<kKind>(m_shared, quantizedOutputs, sizeOf(lane), inResult(place, lane), waiting(lane));
    }
  }

  /// All threads of the block call it after the last tile: an amax is updated once.
  __device__ void finish(const QuantizedOutputs& quantizedOutputs) const {
    if (kKind != CopyKind::Tensor || !quantizedOutputs.pairs[0].amax) return;  // all have one, or none
    const float largest = largestOfBlock(m_largest, tileThread());
#pragma unroll 1
    for (int i = 0; i < quantizedOutputs.numPairs; ++i)
      if (float* const amax = quantizedOutputs.pairs[i].amax) raiseTo(amax, largest, tileThread());
  }

 private:
  using Loads = typename Evaluator::Loads;
  static constexpr int kLanes = Evaluator::kLanes;
  static constexpr int kMaxColumnSums = Evaluator::kMaxColumnSums > 0 ? Evaluator::kMaxColumnSums : 1;
  /// With this many rows at once a thread has 64 bytes or more in flight.
  static constexpr int kRowsAtOnce = sizeof(Loads) <= 16 ? 2 : 1;

  __device__ MatrixSize sizeOf(int lane) const { return {m_grid.rows, kLanes * m_grid.cols, (lane + 1) * m_grid.cols}; }
  __device__ PatchPlace inResult(PatchPlace place, int lane) const {
    place.col += lane * m_grid.cols;
    return place;
  }
  __device__ WaitingPatch<kElement> waiting(int lane) const {
    return WaitingPatch<kElement>(m_memory + lane * WaitingPatch<kElement>::kTileBytes);
  }
  __device__ TensorCodes codes(int lane, const QuantizedOutputs& quantizedOutputs) const {
    return TensorCodes(kElement, quantizedOutputs, m_scale, sizeOf(lane),
                       m_memory + lane * quantizedOutputs.numPairs * WaitingCodes::kTileBytes);
  }

  /// While rows are evaluated the next ones are being loaded.
  __device__ void evaluate(const PatchPlace& place, std::int64_t tile, const QuantizedOutputs& quantizedOutputs) {
    float sums[kMaxColumnSums][kPatch] = {};
    Loads next[kRowsAtOnce];
    request(place, 0, next);
#pragma unroll 1
    for (int first = 0; first < kPatch; first += kRowsAtOnce) {
      Loads loads[kRowsAtOnce];
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) loads[i] = next[i];
      request(place, first + kRowsAtOnce, next);
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) evaluateRow(place, first + i, loads[i], sums, quantizedOutputs);
    }
    const bool isFirst = tile == blockIdx.y;
    for (int s = 0; s < m_evaluator.numColumnSums(); ++s)
      writeColumnPart<kPatch>(sums[s], m_grid, place.col, m_columnParts + s * gridDim.y * m_grid.cols, isFirst);
  }

  __device__ void request(const PatchPlace& place, int first, Loads (&loads)[kRowsAtOnce]) const {
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i)
      if (isInside(place, first + i)) m_evaluator.request(m_grid, positionOf(place, first + i), loads[i]);
  }

  static __device__ bool isInside(const PatchPlace& place, int row) { return row < place.numRows && place.numCols > 0; }
  static __device__ Position positionOf(const PatchPlace& place, int row) {
    return {place.row + row, place.col, kPatch};
  }

  __device__ void evaluateRow(const PatchPlace& place, int row, const Loads& loads,
                              float (&sums)[kMaxColumnSums][kPatch], const QuantizedOutputs& quantizedOutputs) {
    const Position at = positionOf(place, row);
    const bool isActive = isInside(place, row);
    float values[kLanes][kPatch] = {};
    if (isActive) m_evaluator.evaluate(m_grid, at, loads, values);
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      if constexpr (kKind == CopyKind::Tensor)
        codes(lane, quantizedOutputs).put(inResult(place, lane), row, values[lane], m_largest);
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
  float m_scale = 1.0f;    // scale of the first pair, where a tensor has one
  float m_largest = 0.0f;  // amax of the thread's patches, where one scale comes with an amax
};

/// As walkGrid, by tiles; one result of dtype kElement, which has the grid's columns in kLanes lanes side by side, is
/// quantized. The grid has a multiple of kPatch columns. columnParts: as in walkGrid; rowParts:
/// [numRowSums][rows][gridDim.x]. The launch provides the shared memory in which lanes wait.
template <CopyKind kKind, Element kElement, class Evaluator>
__device__ void walkTiles(Evaluator& evaluator, const Grid& grid, const QuantizedOutputs& quantizedOutputs,
                          float* columnParts, float* rowParts) {
  FUSELINE_DYNAMIC_SHARED(memory);
  __shared__ TileMemory shared;
  TileWalk<kKind, kElement, Evaluator> walk(memory, shared, evaluator, grid, columnParts, rowParts);
  const std::int64_t tiles = (grid.rows + kTileSide - 1) / kTileSide;
  for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) walk.walk(tile, quantizedOutputs);
  walk.finish(quantizedOutputs);
}

}  // namespace fuseline::cuda::device
