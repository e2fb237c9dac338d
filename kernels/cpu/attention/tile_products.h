// Products of attention's tiles: in float32, or of bf16 numbers with sums in float32 where the CPU has instructions for
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/attention/attention_functions.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cpu {

class WorkspaceCutter;

/// Has this CPU instructions for tiles of bf16 numbers, and may this process use them? AVX-512's dot products of bf16
/// numbers were slower than products in float32 (measured 2026-11, 2-core Xeon with AMX), so nothing uses those.
bool canMultiplyBf16Tiles();

/// Rows of float32: [count, stride], of which the first `channels` columns count.
struct RowBlock {
  const float* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t count = 0;
  std::int64_t channels = 0;
};

/// Packed tiles can be entered at rows that are multiples of this.
constexpr std::int64_t kPackedRows = 32;
/// Bytes of rows, packed in any way.
std::int64_t packedBytes(std::int64_t count, std::int64_t channels);

/// A[m = rows, k = channels].
PackedTiles packLeft(const RowBlock& rows, std::byte* to);
/// B[k = rows, n = channels], whose channels are padded to kLanePad with zeros; and whether all of it is finite.
PackedTiles packRight(const RowBlock& rows, std::byte* to);
/// B[k = channels, n = rows].
PackedTiles packRightTransposed(const RowBlock& rows, std::byte* to);

/// Where one of these was packed.
PackedTiles placedLeft(const std::byte* data, std::int64_t channels);
PackedTiles placedRight(const std::byte* data, std::int64_t count);

/// The same without its first rows, which are a multiple of kPackedRows.
PackedTiles leftFrom(const PackedTiles& tiles, std::int64_t row);
PackedTiles rightFrom(const PackedTiles& tiles, std::int64_t row);

/// Multiplies for one thread.
class TileProducts {
 public:
  TileProducts(bool areOfBf16, WorkspaceCutter& cutter);

  bool areOfBf16() const { return m_areOfBf16; }
  /// In float32 where B is not packed. Otherwise A is packed, too, or a tile of scores, which becomes a sum of two bf16
  /// numbers: rounding it to one would be felt in gradients. C has whole panels of rows; those from m on are not
  /// defined afterwards.
  void multiply(const TileProduct& product) const;

 private:
  bool m_areOfBf16;
  std::byte* m_left = nullptr;
  std::byte* m_errors = nullptr;  // rounding errors of m_left
};

}  // namespace fuseline::cpu
