// The copies that linear ops read of a result, written by the kernel that makes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/block_codes.h"
#include "kernels/cuda/device/elementwise.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// Raises an amax to the largest magnitude of a patch's threads. Floats that are not negative are ordered as their bits
/// are, and NaN does not count. All threads of the block call it.
inline __device__ void raiseAmax(float* amax, const float (&x)[kPatch][kPatch]) {
  float largest = 0.0f;
#pragma unroll
  for (int row = 0; row < kPatch; ++row) {
#pragma unroll
    for (int col = 0; col < kPatch; ++col) largest = largerOf(fabsf(x[row][col]), largest);
  }
  largest = largestOfBlock(largest, static_cast<int>(threadIdx.y * kTilePatches + threadIdx.x));
  const bool isFirst = threadIdx.x == 0 && threadIdx.y == 0;
  if (isFirst) atomicMax(reinterpret_cast<int*>(amax), std::bit_cast<int>(largest));
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
    storeTransposed(shared.transposed, pair.columnwise.codes, size.rows, size.cols, place, pair.columnwise.code, x,
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

/// As walkGrid, by tiles of 128 x 128; one result is rounded to its dtype, `element`, and quantized. Evaluator,
/// besides: handed(), the values of that result. Its vectors have kPatch lanes, and the matrix a multiple of kPatch
/// columns. columnParts: as in walkGrid; rowParts: [numRowSums][rows][gridDim.x].
template <CopyKind kKind, class Evaluator>
__device__ void walkTiles(Evaluator& evaluator, const Grid& grid, const HandOver& handOver, Element element,
                          float* columnParts, float* rowParts) {
  constexpr int kMaxColumnSums = Evaluator::kMaxColumnSums;
  __shared__ TileMemory shared;
  float sums[kMaxColumnSums > 0 ? kMaxColumnSums : 1][kPatch] = {};
  const std::int64_t tiles = (grid.rows + kTileSide - 1) / kTileSide;
  const std::int64_t col = static_cast<std::int64_t>(blockIdx.x) * kTileSide + threadIdx.x * kPatch;
  for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const PatchPlace place = patchPlace(tile, blockIdx.x, grid.rows, grid.cols);
    float x[kPatch][kPatch];
#pragma unroll
    for (int row = 0; row < kPatch; ++row) {
      const Position at{place.row + row, place.col, kPatch};
      const bool isActive = row < place.numRows && place.numCols > 0;
      if (isActive) evaluator.evaluate(grid, at);
#pragma unroll
      for (int v = 0; v < kPatch; ++v) x[row][v] = isActive ? roundedTo(element, evaluator.handed()[v]) : 0.0f;
      for (int s = 0; s < evaluator.numColumnSums(); ++s)
        for (int v = 0; v < kPatch; ++v)
          if (isActive) sums[s][v] += evaluator.columnSum(s)[v];
      for (int s = 0; s < evaluator.numRowSums(); ++s) {
        float sum = 0.0f;
        for (int v = 0; v < kPatch; ++v)
          if (isActive) sum += evaluator.rowSum(s)[v];
        sum = sumOverLanes(sum, kTilePatches);
        if (at.row < grid.rows && threadIdx.x == 0) rowParts[(s * grid.rows + at.row) * gridDim.x + blockIdx.x] = sum;
      }
    }
    writeCopies<kKind>(shared, handOver, {grid.rows, grid.cols}, place, x);
  }
  for (int s = 0; s < evaluator.numColumnSums(); ++s)
    writeColumnPart<kPatch>(sums[s], grid, col, columnParts + s * gridDim.y * grid.cols);
}

}  // namespace fuseline::cuda::device
