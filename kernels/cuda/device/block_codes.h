// Quantizes a tile that a block of threads holds, with a scale for every block of 1x128, 128x128, 1x32 or 32x32
// elements: amaxes, scales and quantized values are computed without reading memory again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/e8m0.h"
#include "kernels/cuda/device/code_tile.h"

#include <cstdint>

namespace fuseline::cuda::device {

constexpr int kFloat8Block = 128;
constexpr int kMxBlock = 32;

/// Writes zeros after the last scale of a line.
inline __device__ void padScales(const CodedCopy& copy, std::int64_t index) {
#pragma unroll 1
  for (; index % 4 != 0; ++index) static_cast<float*>(copy.scales)[index] = 0.0f;
}

/// Returns the multiplier of a block's elements. The writer stores its reciprocal, which dequantizes them.
template <bool kIsE8m0>
__device__ float scaleBlock(const CodedCopy& copy, float amax, std::int64_t blockRow, std::int64_t blockCol,
                            bool isWriter) {
  const std::int64_t index = blockRow * copy.scaleRowStride + blockCol * copy.scaleColStride;
  if constexpr (kIsE8m0) {
    const std::uint8_t stored = E8m0::fromFloat(amax * (1.0f / largestOf(copy.code)), E8m0::Rounding::Up);
    if (isWriter) static_cast<std::uint8_t*>(copy.scales)[index] = stored;
    return E8m0::reciprocal(stored);
  } else {
    const float scale = scaleFromAmax(amax, copy.code, copy.rule);
    if (isWriter) {
      static_cast<float*>(copy.scales)[index] = 1.0f / scale;
      if ((copy.scaleColStride == 1 ? blockCol : blockRow) + 1 == copy.scalesInLine) padScales(copy, index + 1);
    }
    return scale;
  }
}

/// The largest value over `width` neighboring threads of a row of patches; `width`: a power of two up to 16.
inline __device__ float largestOverLanes(float value, int width) {
  for (int offset = width / 2; offset > 0; offset /= 2)
    value = largerOf(__shfl_xor_sync(0xffffffffu, value, offset), value);
  return value;
}

/// Turns the amaxes of a patch's rows into amaxes of the rows of kLanes neighboring patches, each held by one of their
/// threads, so that each scale is computed once: largest[j] of thread l belongs to row j * kLanes + l. With more lanes
/// than a patch has rows, thread l holds row l % kPatch.
template <int kLanes>
__device__ void spreadOverLanes(float (&largest)[kPatch]) {
#pragma unroll
  for (int offset = 1; offset < kLanes; offset *= 2) {
    const bool isUpper = (threadIdx.x & offset) != 0;
    if (offset >= kPatch) largest[0] = largerOf(__shfl_xor_sync(0xffffffffu, largest[0], offset), largest[0]);
#pragma unroll
    for (int j = 0; j < kPatch / 2 / offset; ++j) {
      const float given = isUpper ? largest[2 * j] : largest[2 * j + 1];
      const float held = isUpper ? largest[2 * j + 1] : largest[2 * j];
      largest[j] = largerOf(__shfl_xor_sync(0xffffffffu, given, offset), held);
    }
  }
}

/// The largest magnitudes of the columns, over every kBlock rows of a tile.
struct ColumnMaxima {
  float ofPatches[kTilePatches][kTileSide];
  float ofBlocks[kTileSide / kMxBlock][kTileSide];

  /// out: made(block row of the tile, column of the tile, amax), called once for each column of this thread's patch.
  /// All threads call it.
  template <int kBlock, class Patch, class Make>
  __device__ void find(const Patch& patch, const Make& make, float (&out)[kPatch]) {
    constexpr int kGroups = kTileSide / kBlock;
    fill<kPatch>(0.0f, out);
#pragma unroll
    for (int row = 0; row < kPatch; ++row) {
      float x[kPatch];
      patch.row(row, x);
#pragma unroll
      for (int col = 0; col < kPatch; ++col) out[col] = largerOf(fabsf(x[col]), out[col]);
    }
#pragma unroll
    for (int col = 0; col < kPatch; ++col) ofPatches[threadIdx.y][threadIdx.x * kPatch + col] = out[col];
    __syncthreads();
    constexpr int kPatchesPerBlock = kBlock / kPatch;
    for (int i = tileThread(); i < kGroups * kTileSide; i += kTileThreads) {
      float largest = 0.0f;
      for (int above = 0; above < kPatchesPerBlock; ++above)
        largest = largerOf(ofPatches[i / kTileSide * kPatchesPerBlock + above][i % kTileSide], largest);
      ofBlocks[i / kTileSide][i % kTileSide] = make(i / kTileSide, i % kTileSide, largest);
    }
    __syncthreads();
#pragma unroll
    for (int col = 0; col < kPatch; ++col)
      out[col] = ofBlocks[threadIdx.y / kPatchesPerBlock][threadIdx.x * kPatch + col];
  }
};

/// Shared memory of a block of threads that quantizes a tile.
struct TileMemory {
  TransposedTile transposed;
  ColumnMaxima maxima;
};

struct BlockPair {
  const CodedCopy& rowwise;
  const CodedCopy& columnwise;
};

/// Rowwise, with a scale for every kBlock elements of a row.
template <int kBlock, bool kIsE8m0, class Patch>
__device__ void quantizeRowBlocks(const CodedCopy& copy, const MatrixSize& size, const PatchPlace& place,
                                  const Patch& patch) {
  constexpr int kLanes = kBlock / kPatch;
  constexpr int kSpread = kLanes < kPatch ? kLanes : kPatch;  // rows that different threads hold
  constexpr int kHeld = kPatch / kSpread;
  static_assert(kHeld <= 2);
  float held[kPatch];
  largestOfRows(patch, held);
  spreadOverLanes<kLanes>(held);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const bool isWriter = lane < kSpread && place.col - lane * kPatch < size.endCol;
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int row = j * kSpread + lane % kSpread;
    held[j] = scaleBlock<kIsE8m0>(copy, held[j], place.row + row, place.col / kBlock, isWriter && row < place.numRows);
  }
#pragma unroll Patch::kRowsUnrolled
  for (int row = 0; row < kPatch; ++row) {
    float x[kPatch];
    float multipliers[kPatch];
    patch.row(row, x);
    fill<kPatch>(__shfl_sync(0xffffffffu, row < kSpread ? held[0] : held[kHeld - 1], row % kSpread, kLanes),
                 multipliers);
    storeRow(copy.codes, size.cols, place, row, encodePacket(x, multipliers, copy.code));
  }
}

template <class Patch>
__device__ void storeColumns(TileMemory& shared, const CodedCopy& copy, const MatrixSize& size, const PatchPlace& place,
                             const Patch& patch, const float (&multipliers)[kPatch]) {
  if (copy.isTransposed)
    storeTransposed(shared.transposed, copy.codes, size.rows, size.endCol, place, copy.code, patch, multipliers);
  else
    storeRows(copy.codes, size.cols, place, copy.code, patch, multipliers);
}

template <int kBlock, bool kIsE8m0, class Patch>
__device__ void quantizeLines(TileMemory& shared, const BlockPair& task, const MatrixSize& size,
                              const PatchPlace& place, const Patch& patch) {
  if (task.rowwise.codes) quantizeRowBlocks<kBlock, kIsE8m0>(task.rowwise, size, place, patch);
  if (!task.columnwise.codes) return;
  const std::int64_t firstRow = place.row - threadIdx.y * kPatch;
  const std::int64_t firstCol = place.col - threadIdx.x * kPatch;
  const auto scaleOf = [&](int block, int col, float largest) {
    const bool isInside = firstRow + block * kBlock < size.rows && firstCol + col < size.endCol;
    return scaleBlock<kIsE8m0>(task.columnwise, largest, firstRow / kBlock + block, firstCol + col, isInside);
  };
  float multipliers[kPatch];
  shared.maxima.find<kBlock>(patch, scaleOf, multipliers);
  storeColumns(shared, task.columnwise, size, place, patch, multipliers);
}

/// The largest magnitude of the square that contains the thread's patch. All threads of the block call it.
template <int kBlock, class Patch>
__device__ float largestOfSquare(TileMemory& shared, const Patch& patch) {
  if constexpr (kBlock == kTileSide) return largestOfBlock<kTileThreads>(largestOfPatch(patch), tileThread());
  float ofColumns[kPatch];
  shared.maxima.find<kBlock>(
      patch, [](int, int, float largest) { return largest; }, ofColumns);
  return largestOverLanes(largestOfRow(ofColumns), kBlock / kPatch);
}

/// Both directions have the scales of the same squares.
template <int kBlock, bool kIsE8m0, class Patch>
__device__ void quantizeSquares(TileMemory& shared, const BlockPair& task, const MatrixSize& size,
                                const PatchPlace& place, const Patch& patch) {
  constexpr int kPatchesPerBlock = kBlock / kPatch;
  const float largest = largestOfSquare<kBlock>(shared, patch);
  const bool isWriter = threadIdx.x % kPatchesPerBlock == 0 && threadIdx.y % kPatchesPerBlock == 0 &&
                        place.numRows > 0 && place.numCols > 0;
  const auto scaled = [&](const CodedCopy& copy) {
    const bool isWritten = copy.codes && isWriter;
    return ScaledCopy{copy, scaleBlock<kIsE8m0>(copy, largest, place.row / kBlock, place.col / kBlock, isWritten)};
  };
  storeCopies(shared.transposed, scaled(task.rowwise), scaled(task.columnwise), size, place, patch);
}

/// All threads of the block call it. kKind: with blocks.
template <CopyKind kKind, class Patch>
__device__ void quantizePatch(TileMemory& shared, const BlockPair& task, const MatrixSize& size,
                              const PatchPlace& place, const Patch& patch) {
  constexpr bool kIsMx = kKind == CopyKind::MxLine || kKind == CopyKind::MxSquare;
  constexpr int kBlock = kIsMx ? kMxBlock : kFloat8Block;
  if constexpr (kKind == CopyKind::MxSquare || kKind == CopyKind::Float8Square)
    quantizeSquares<kBlock, kIsMx>(shared, task, size, place, patch);
  else
    quantizeLines<kBlock, kIsMx>(shared, task, size, place, patch);
}

}  // namespace fuseline::cuda::device
