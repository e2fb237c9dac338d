// Blocks of 1x128, 128x128, 1x32 and 32x32 elements: both copies in one pass over x.
//
// A block of threads holds a tile of 128 x 128 elements, hence whole blocks in either direction, in registers: largest
// magnitudes, scales and codes follow without a second look at memory.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_quantize_launch.h"

#include "core/numerics/e8m0.h"
#include "kernels/cuda/launch.h"

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/device/code_tile.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr int kFloat8Block = 128;
constexpr int kMxBlock = 32;

/// What the elements of a block are multiplied by. The writer stores what dequantizes them.
template <bool kIsE8m0>
__device__ float scaleBlock(const BlockCopy& copy, float amax, std::int64_t blockRow, std::int64_t blockCol,
                            bool isWriter) {
  const std::int64_t index = blockRow * copy.scaleRowStride + blockCol * copy.scaleColStride;
  if constexpr (kIsE8m0) {
    const std::uint8_t stored = E8m0::fromFloat(amax * (1.0f / largestOf(copy.code)), E8m0::Rounding::Up);
    if (isWriter) reinterpret_cast<std::uint8_t*>(copy.scales)[index] = stored;
    return E8m0::reciprocal(stored);
  } else {
    const float scale = scaleFromAmax(amax, copy.code, copy.rule);
    if (isWriter) reinterpret_cast<float*>(copy.scales)[index] = 1.0f / scale;
    return scale;
  }
}

/// The largest over neighbouring threads of a row of patches; `width`: how many, a power of two up to 16.
__device__ float largestOverLanes(float value, int width) {
  for (int offset = width / 2; offset > 0; offset /= 2)
    value = largerOf(__shfl_xor_sync(0xffffffffu, value, offset), value);
  return value;
}

/// The largest magnitudes of the columns, over every kBlock rows of a tile.
template <int kBlock>
struct ColumnMaxima {
  static constexpr int kGroups = kTileSide / kBlock;
  float ofPatches[kTilePatches][kTileSide];
  float ofBlocks[kGroups][kTileSide];

  /// out: those of the columns of this thread's patch, over the block that it is part of. All threads call it.
  __device__ void find(const float (&x)[kPatch][kPatch], float (&out)[kPatch]) {
#pragma unroll
    for (int col = 0; col < kPatch; ++col) {
      float largest = 0.0f;
#pragma unroll
      for (int row = 0; row < kPatch; ++row) largest = largerOf(fabsf(x[row][col]), largest);
      ofPatches[threadIdx.y][threadIdx.x * kPatch + col] = largest;
    }
    __syncthreads();
    constexpr int kPatchesPerBlock = kBlock / kPatch;
    for (int i = static_cast<int>(threadIdx.y * kTilePatches + threadIdx.x); i < kGroups * kTileSide;
         i += kTileThreads) {
      float largest = 0.0f;
      for (int patch = 0; patch < kPatchesPerBlock; ++patch)
        largest = largerOf(ofPatches[i / kTileSide * kPatchesPerBlock + patch][i % kTileSide], largest);
      ofBlocks[i / kTileSide][i % kTileSide] = largest;
    }
    __syncthreads();
#pragma unroll
    for (int col = 0; col < kPatch; ++col)
      out[col] = ofBlocks[threadIdx.y / kPatchesPerBlock][threadIdx.x * kPatch + col];
  }
};

/// Rowwise, with a scale for every kBlock elements of a row.
template <int kBlock, bool kIsE8m0>
__device__ void quantizeRowBlocks(const BlockCopy& copy, std::int64_t cols, const PatchPlace& place,
                                  const float (&x)[kPatch][kPatch]) {
  constexpr int kLanes = kBlock / kPatch;
  float multipliers[kPatch];
#pragma unroll
  for (int row = 0; row < kPatch; ++row) {
    float largest = 0.0f;
#pragma unroll
    for (int col = 0; col < kPatch; ++col) largest = largerOf(fabsf(x[row][col]), largest);
    largest = largestOverLanes(largest, kLanes);
    const bool isWriter = threadIdx.x % kLanes == 0 && row < place.numRows && place.numCols > 0;
    multipliers[row] = scaleBlock<kIsE8m0>(copy, largest, place.row + row, place.col / kBlock, isWriter);
  }
  storeRows(copy.codes, cols, place, copy.code, x, [&](int row, int) { return multipliers[row]; });
}

__device__ void storeColumns(TransposedTile& shared, const BlockCopy& copy, const BlockQuantization& task,
                             const PatchPlace& place, const float (&x)[kPatch][kPatch],
                             const float (&multipliers)[kPatch]) {
  if (copy.isTransposed)
    storeTransposed(shared, copy.codes, task.rows, task.cols, place, copy.code, x, multipliers);
  else
    storeRows(copy.codes, task.cols, place, copy.code, x, [&](int, int col) { return multipliers[col]; });
}

template <int kBlock, bool kIsE8m0>
__device__ void quantizeLines(TransposedTile& shared, ColumnMaxima<kBlock>& maxima, const BlockQuantization& task,
                              const PatchPlace& place, const float (&x)[kPatch][kPatch]) {
  if (task.rowwise.codes) quantizeRowBlocks<kBlock, kIsE8m0>(task.rowwise, task.cols, place, x);
  if (!task.columnwise.codes) return;
  float multipliers[kPatch];
  maxima.find(x, multipliers);
  const bool isFirst = threadIdx.y % (kBlock / kPatch) == 0 && place.numRows > 0;
#pragma unroll
  for (int col = 0; col < kPatch; ++col)
    multipliers[col] = scaleBlock<kIsE8m0>(task.columnwise, multipliers[col], place.row / kBlock, place.col + col,
                                           isFirst && col < place.numCols);
  storeColumns(shared, task.columnwise, task, place, x, multipliers);
}

/// Both copies have the scales of the same squares.
template <int kBlock, bool kIsE8m0>
__device__ void quantizeSquares(TransposedTile& shared, ColumnMaxima<kBlock>& maxima, const BlockQuantization& task,
                                const PatchPlace& place, const float (&x)[kPatch][kPatch]) {
  constexpr int kPatchesPerBlock = kBlock / kPatch;
  float ofColumns[kPatch];
  maxima.find(x, ofColumns);
  float largest = 0.0f;
#pragma unroll
  for (int col = 0; col < kPatch; ++col) largest = largerOf(ofColumns[col], largest);
  largest = largestOverLanes(largest, kPatchesPerBlock);
  const bool isWriter = threadIdx.x % kPatchesPerBlock == 0 && threadIdx.y % kPatchesPerBlock == 0 &&
                        place.numRows > 0 && place.numCols > 0;
  const auto multiplierOf = [&](const BlockCopy& copy) {
    return scaleBlock<kIsE8m0>(copy, largest, place.row / kBlock, place.col / kBlock, isWriter);
  };
  if (task.rowwise.codes) {
    const float multiplier = multiplierOf(task.rowwise);
    storeRows(task.rowwise.codes, task.cols, place, task.rowwise.code, x, [&](int, int) { return multiplier; });
  }
  if (!task.columnwise.codes) return;
  float multipliers[kPatch];
  fill<kPatch>(multiplierOf(task.columnwise), multipliers);
  storeColumns(shared, task.columnwise, task, place, x, multipliers);
}

template <int kBlock, bool kIsSquare, bool kIsE8m0>
__global__ void __launch_bounds__(kTileThreads) quantizeBlocks(const __grid_constant__ BlockQuantization task) {
  __shared__ TransposedTile shared;
  __shared__ ColumnMaxima<kBlock> maxima;
  const std::int64_t tiles = (task.rows + kTileSide - 1) / kTileSide;
  for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const PatchPlace place = patchPlace(tile, blockIdx.x, task.rows, task.cols);
    float x[kPatch][kPatch];
    loadPatch(task.element, task.x, task.cols, place, x);
    if constexpr (kIsSquare)
      quantizeSquares<kBlock, kIsE8m0>(shared, maxima, task, place, x);
    else
      quantizeLines<kBlock, kIsE8m0>(shared, maxima, task, place, x);
    __syncthreads();
  }
}

/// A thread has one element: such copies are read where backward asks for forward's rounding only.
__global__ void __launch_bounds__(kBlockThreads) dequantizeBlocks(const __grid_constant__ BlockDequantization task) {
  const std::int64_t elements = task.rows * task.cols;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < elements;
       i += stride) {
    const std::int64_t row = i / task.cols;
    const std::int64_t col = i % task.cols;
    const std::int64_t scale =
        row / task.blockRows * task.copy.scaleRowStride + col / task.blockCols * task.copy.scaleColStride;
    const float factor = task.isE8m0 ? E8m0::toFloat(reinterpret_cast<const std::uint8_t*>(task.copy.scales)[scale])
                                     : reinterpret_cast<const float*>(task.copy.scales)[scale];
    const std::uint8_t code = task.copy.codes[task.copy.isTransposed ? col * task.rows + row : i];
    storeElement(task.element, task.out, i, decode(code, task.copy.code) * factor);
  }
}

auto kernelOf(BlockKind kind) {
  switch (kind) {
    case BlockKind::Float8Square: return quantizeBlocks<kFloat8Block, true, false>;
    case BlockKind::MxLine: return quantizeBlocks<kMxBlock, false, true>;
    case BlockKind::MxSquare: return quantizeBlocks<kMxBlock, true, true>;
    case BlockKind::Float8Line: break;
  }
  return quantizeBlocks<kFloat8Block, false, false>;
}

}  // namespace

void launchBlockQuantize(const BlockQuantization& quantization, BlockKind kind, Stream stream) {
  if (quantization.rows == 0 || quantization.cols == 0) return;
  launch(kernelOf(kind), tileGrid(quantization.rows, quantization.cols), dim3(kTilePatches, kTilePatches), 0, stream,
         quantization);
}

void launchBlockDequantize(const BlockDequantization& dequantization, Stream stream) {
  constexpr std::int64_t kMaxBlocks = 65535;
  const std::int64_t elements = dequantization.rows * dequantization.cols;
  if (elements == 0) return;
  const std::int64_t blocks = std::min((elements + kBlockThreads - 1) / kBlockThreads, kMaxBlocks);
  launch(dequantizeBlocks, dim3(static_cast<unsigned>(blocks)), dim3(kBlockThreads), 0, stream, dequantization);
}

}  // namespace fuseline::cuda
