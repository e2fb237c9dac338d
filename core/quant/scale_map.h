// Positions of the scales of one quantized tensor: one per block, and as cuBLASLt reads them. Usable in device code: no
// library calls.
// Source: cuBLAS 13.1 documentation, "1D block scaling factors layout" and the sizes of NVIDIA's samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/e8m0.h"

#include <cstdint>

namespace fuseline {

/// Order in which a GEMM reads scales. Columns: outer rows are contiguous. Rows: scales along the contraction are
/// contiguous. Tiles: bytes, swizzled into tiles of 128 x 4. TileWords: words of four such bytes, one for each block of
/// 128.
enum class ScaleOrder : std::uint8_t { Columns, Rows, Tiles, TileWords };

constexpr std::int64_t kScaleTileOuter = 128;
constexpr std::int64_t kScaleTileInner = 4;

/// Byte offset, in tiles, of the scale of outer row `outer` and block `inner` along the contraction. Tiles of 128 x 4
/// scales take 512 bytes; they follow each other along the contraction first. paddedInner: a multiple of 4.
constexpr std::int64_t swizzledOffset(std::int64_t outer, std::int64_t inner, std::int64_t paddedInner) {
  constexpr std::int64_t kTileColumn = 32;  // outer rows with scales 16 bytes apart
  const std::int64_t tile = outer / kScaleTileOuter * (paddedInner / kScaleTileInner) + inner / kScaleTileInner;
  const std::int64_t row = outer % kScaleTileOuter;
  return tile * kScaleTileOuter * kScaleTileInner + row % kTileColumn * 16 + row / kTileColumn * kScaleTileInner +
         inner % kScaleTileInner;
}

/// The E8M0 scales of the four blocks of 32 in a block of 128, in tile order: all equal to its scale, which is a power
/// of two. Source: TransformerEngine, which multiplies blocks of 128 in this way on GPUs after Hopper.
constexpr std::uint32_t mxScalesOf(float scale) {
  constexpr std::uint32_t kFourTimes = 0x01010101U;
  return E8m0::fromFloat(scale, E8m0::Rounding::TowardsZero, Overflow::Propagate) * kFourTimes;
}

/// The blocks of a quantized tensor as a GEMM reads them: the contraction is always the inner direction.
struct ScaleMap {
  ScaleOrder order = ScaleOrder::Columns;
  bool isOnEnd = false;       // the grid's rows lie along the contraction
  std::int64_t gridCols = 1;  // of the blocks as stored
  std::int64_t outer = 1;     // outer rows with separate scales
  std::int64_t inner = 1;     // scales along the contraction
  std::int64_t repeat = 1;    // outer rows that share a scale

  static constexpr std::int64_t padded(std::int64_t extent, std::int64_t multiple) {
    return (extent + multiple - 1) / multiple * multiple;
  }

  /// Does each of a tile's 128 outer rows have separate scales?
  constexpr bool isOfTiles() const { return order == ScaleOrder::Tiles || order == ScaleOrder::TileWords; }

  /// Capacity of cuBLASLt's layout; positions beyond outer and inner are padding.
  constexpr std::int64_t paddedOuter() const {
    if (order == ScaleOrder::Rows) return outer;
    return padded(outer, isOfTiles() ? kScaleTileOuter : kScaleTileInner);
  }
  constexpr std::int64_t paddedInner() const {
    return order == ScaleOrder::Columns || order == ScaleOrder::TileWords ? inner : padded(inner, kScaleTileInner);
  }

  /// Index in the compact scales.
  constexpr std::int64_t compact(std::int64_t row, std::int64_t block) const {
    const std::int64_t shared = row / repeat;
    return isOnEnd ? block * gridCols + shared : shared * gridCols + block;
  }

  /// Index in the layout of cuBLASLt.
  constexpr std::int64_t gemm(std::int64_t row, std::int64_t block) const {
    if (order == ScaleOrder::Columns) return block * paddedOuter() + row;
    if (order == ScaleOrder::Rows) return row * paddedInner() + block;
    if (order == ScaleOrder::Tiles) return swizzledOffset(row, block, paddedInner());
    return swizzledOffset(row, block * kScaleTileInner, paddedInner() * kScaleTileInner) / kScaleTileInner;
  }
};

}  // namespace fuseline
