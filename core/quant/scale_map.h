// Positions of the scales of one copy: one a block, and as cuBLASLt reads them. Usable in device code: no library
// calls.
// Source: cuBLAS 13.1 documentation, "1D block scaling factors layout" and the sizes of NVIDIA's samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline {

/// How a GEMM reads scales: Columns: outer rows stand together. Rows: scales along the contraction stand together.
/// Tiles: bytes, swizzled into tiles of 128 x 4.
enum class ScaleOrder : std::uint8_t { Columns, Rows, Tiles };

constexpr std::int64_t kScaleTileOuter = 128;
constexpr std::int64_t kScaleTileInner = 4;

/// Where the scale of outer row `outer` and block `inner` along the contraction stands in tiles, in bytes. Tiles of
/// 128 x 4 scales take 512 bytes; they follow each other along the contraction first. paddedInner: a multiple of 4.
constexpr std::int64_t swizzledOffset(std::int64_t outer, std::int64_t inner, std::int64_t paddedInner) {
  constexpr std::int64_t kTileColumn = 32;  // outer rows whose scales stand 16 bytes apart
  const std::int64_t tile = outer / kScaleTileOuter * (paddedInner / kScaleTileInner) + inner / kScaleTileInner;
  const std::int64_t row = outer % kScaleTileOuter;
  return tile * kScaleTileOuter * kScaleTileInner + row % kTileColumn * 16 + row / kTileColumn * kScaleTileInner +
         inner % kScaleTileInner;
}

/// A copy's blocks as a GEMM sees them: the contraction is always the inner direction.
struct ScaleMap {
  ScaleOrder order = ScaleOrder::Columns;
  bool isOnEnd = false;       // the grid's rows lie along the contraction
  std::int64_t gridCols = 1;  // of the blocks as they stand in memory
  std::int64_t outer = 1;     // outer rows that have scales of their own
  std::int64_t inner = 1;     // scales along the contraction
  std::int64_t repeat = 1;    // outer rows that share a scale

  static constexpr std::int64_t padded(std::int64_t extent, std::int64_t multiple) {
    return (extent + multiple - 1) / multiple * multiple;
  }

  /// What the layout of cuBLASLt has room for; positions beyond outer and inner are padding.
  constexpr std::int64_t paddedOuter() const {
    if (order == ScaleOrder::Rows) return outer;
    return padded(outer, order == ScaleOrder::Tiles ? kScaleTileOuter : kScaleTileInner);
  }
  constexpr std::int64_t paddedInner() const {
    return order == ScaleOrder::Columns ? inner : padded(inner, kScaleTileInner);
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
    return swizzledOffset(row, block, paddedInner());
  }
};

}  // namespace fuseline
