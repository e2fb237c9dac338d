// By intrinsics, because Highway 1.0 has no products of bf16 numbers. Factors are packed in tiles of 1 KiB as AMX reads
// them: A 16 rows of 32 numbers, B 16 pairs of rows with 16 columns.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/tile_products.h"

#include "core/tensor/scaling.h"
#include "kernels/cpu/attention/attention_tiles.h"
#include "kernels/cpu/machine/tile_registers.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#define FUSELINE_TARGET_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512bf16")))
#define FUSELINE_TARGET_BF16_TILES __attribute__((target("avx512f,avx512bw,avx512dq,avx512bf16,amx-tile,amx-bf16")))
#endif

namespace fuseline::cpu {

namespace {

constexpr std::int64_t kSide = 16;  // rows and columns of C's tiles
constexpr std::int64_t kRowBytes = 64;
constexpr std::int64_t kTileBytes = kSide * kRowBytes;
static_assert(kTileQueries % kPackedRows == 0 && kTileKeys % kPackedRows == 0);

std::int64_t depthOf(std::int64_t k) { return ceilDiv(k, kPackedRows); }

#if defined(__x86_64__)

using Lines = __m512i[kSide];

/// The first `count` of 16 floats; the rest is 0.
FUSELINE_TARGET_BF16 inline __m512 loadUpTo(const float* from, std::int64_t count) {
  const auto mask = static_cast<__mmask16>((1U << std::clamp<std::int64_t>(count, 0, kSide)) - 1);
  return _mm512_maskz_loadu_ps(mask, from);
}

/// Numbers of two vectors, rounded, and their rounding errors, rounded as well.
struct Rounded {
  __m512i numbers, errors;
};

/// 0 where the number is infinite or NaN.
FUSELINE_TARGET_BF16 inline __m512 errorOf(__m512 x, __m256i numbers) {
  constexpr int kNotFinite = 0x99;
  const __m512 rounded = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
  return _mm512_maskz_sub_ps(_knot_mask16(_mm512_fpclass_ps_mask(rounded, kNotFinite)), x, rounded);
}

template <bool hasErrors>
FUSELINE_TARGET_BF16 inline Rounded roundedOf(__m512 low, __m512 high) {
  const auto numbers = (__m512i)_mm512_cvtne2ps_pbh(high, low);
  if constexpr (!hasErrors) return {numbers, numbers};
  const __m512 lowError = errorOf(low, _mm512_castsi512_si256(numbers));
  const __m512 highError = errorOf(high, _mm512_extracti64x4_epi64(numbers, 1));
  return {numbers, (__m512i)_mm512_cvtne2ps_pbh(highError, lowError)};
}

/// 16 rows of 32 numbers from a row and a channel on; 0 beyond the block.
template <bool hasErrors>
FUSELINE_TARGET_BF16 inline void loadRows(const RowBlock& rows, std::int64_t row, std::int64_t channel, Lines& lines,
                                          Lines& errors) {
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) {
    const float* const from = rows.data + (row + i) * rows.stride + channel;
    const std::int64_t count = row + i < rows.count ? rows.channels - channel : 0;
    const Rounded rounded = roundedOf<hasErrors>(loadUpTo(from, count), loadUpTo(from + kSide, count - kSide));
    lines[i] = rounded.numbers;
    if constexpr (hasErrors) errors[i] = rounded.errors;
  }
}

FUSELINE_TARGET_BF16 inline __m512 loadRow(const RowBlock& rows, std::int64_t row, std::int64_t channel) {
  return row < rows.count ? _mm512_loadu_ps(rows.data + row * rows.stride + channel) : _mm512_setzero_ps();
}

/// 16 pairs of rows of 16 columns; rows beyond the block are 0, columns are not.
template <bool hasErrors>
FUSELINE_TARGET_BF16 inline void loadPairs(const RowBlock& rows, std::int64_t row, std::int64_t channel, Lines& lines,
                                           Lines& errors) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) {
    const std::int64_t first = row + 2 * i;
    const Rounded rounded = roundedOf<hasErrors>(loadRow(rows, first, channel), loadRow(rows, first + 1, channel));
    lines[i] = _mm512_permutexvar_epi16(order, rounded.numbers);
    if constexpr (hasErrors) errors[i] = _mm512_permutexvar_epi16(order, rounded.errors);
  }
}

/// Blocks of kBlock lanes change places with blocks of kBlock lines.
template <int kBlock>
FUSELINE_TARGET_BF16 inline void exchange(Lines& lines) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __mmask16 isHigh = _mm512_test_epi32_mask(lanes, _mm512_set1_epi32(kBlock));
  // 16 + lane: of the second operand.
  const __m512i low = _mm512_mask_add_epi32(lanes, isHigh, lanes, _mm512_set1_epi32(kSide - kBlock));
  const __m512i high = _mm512_mask_add_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(kBlock)), isHigh, lanes,
                                             _mm512_set1_epi32(kSide));
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) {
    if (i & kBlock) continue;
    const __m512i upper = lines[i];
    const __m512i lower = lines[i + kBlock];
    lines[i] = _mm512_permutex2var_epi32(upper, low, lower);
    lines[i + kBlock] = _mm512_permutex2var_epi32(upper, high, lower);
  }
}

/// Pairs of numbers of 16 lines: a tile of A becomes one of B, and the other way round.
FUSELINE_TARGET_BF16 inline void transpose(Lines& lines) {
  exchange<1>(lines);
  exchange<2>(lines);
  exchange<4>(lines);
  exchange<8>(lines);
}

FUSELINE_TARGET_BF16 inline void store(const Lines& lines, std::byte* to) {
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) _mm512_store_si512(to + i * kRowBytes, lines[i]);
}

/// How a factor is packed. errors: the rounding errors, packed in the same way; null: not wanted.
struct Packing {
  std::byte* numbers = nullptr;
  std::byte* errors = nullptr;
};

template <bool isTransposed>
FUSELINE_TARGET_BF16 inline void storeTile(Lines& lines, std::byte* to) {
  if constexpr (isTransposed) transpose(lines);
  store(lines, to);
}

/// Panels of 16 rows along the channels.
template <bool isTransposed, bool hasErrors>
FUSELINE_TARGET_BF16 void packAlongChannels(const RowBlock& rows, Packing to) {
  std::int64_t at = 0;
  for (std::int64_t row = 0; row < rows.count; row += kSide)
    for (std::int64_t channel = 0; channel < rows.channels; channel += kPackedRows, at += kTileBytes) {
      Lines lines, errors;
      loadRows<hasErrors>(rows, row, channel, lines, errors);
      storeTile<isTransposed>(lines, to.numbers + at);
      if constexpr (hasErrors) storeTile<isTransposed>(errors, to.errors + at);
    }
}

/// Panels of 16 channels along the rows.
template <bool isTransposed, bool hasErrors>
FUSELINE_TARGET_BF16 void packAlongRows(const RowBlock& rows, Packing to) {
  std::int64_t at = 0;
  for (std::int64_t channel = 0; channel < rows.channels; channel += kSide)
    for (std::int64_t row = 0; row < rows.count; row += kPackedRows, at += kTileBytes) {
      Lines lines, errors;
      loadPairs<hasErrors>(rows, row, channel, lines, errors);
      storeTile<isTransposed>(lines, to.numbers + at);
      if constexpr (hasErrors) storeTile<isTransposed>(errors, to.errors + at);
    }
}

/// C's rows times their factors, most of which are 1 after a few tiles.
FUSELINE_TARGET_BF16 void multiplyRows(const TileProduct& p) {
  for (std::int64_t row = 0; row < p.m; ++row) {
    if (p.keep[row] == 1.0F) continue;
    float* const c = p.c + row * p.cRow;
    const __m512 factor = _mm512_set1_ps(p.keep[row]);
    for (std::int64_t col = 0; col < p.n; col += kSide)
      _mm512_storeu_ps(c + col, _mm512_mul_ps(_mm512_loadu_ps(c + col), factor));
  }
}

/// The product's panels from a row and a column of C on.
struct Panels {
  const TileProduct& product;
  const std::byte* errors = nullptr;  // of A, in its order

  std::int64_t depth() const { return depthOf(product.k); }
  bool adds() const { return product.accumulates || product.keep; }
  std::int64_t leftOffset(std::int64_t row) const { return row / kSide * product.left.panelBytes; }
  const std::byte* right(std::int64_t col) const { return product.right.data + col / kSide * product.right.panelBytes; }
  float* sums(std::int64_t row, std::int64_t col) const { return product.c + row * product.cRow + col; }
};

/// Adds products of A's tiles with those of B in 6 and 7.
template <int kRows, int kCols>
FUSELINE_TARGET_BF16_TILES inline void addProducts(const std::byte* left, std::int64_t panelBytes) {
  _tile_loadd(4, left, kRowBytes);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (kCols > 1) _tile_dpbf16ps(1, 4, 7);
  if constexpr (kRows > 1) _tile_loadd(5, left + panelBytes, kRowBytes);
  if constexpr (kRows > 1) _tile_dpbf16ps(2, 5, 6);
  if constexpr (kRows > 1 && kCols > 1) _tile_dpbf16ps(3, 5, 7);
}

/// One or two panels of each factor. Tiles 0 to 3 hold sums, 4 and 5 numbers of A, 6 and 7 of B.
template <int kRows, int kCols>
FUSELINE_TARGET_BF16_TILES void multiplyPanels(const Panels& panels, std::int64_t row, std::int64_t col) {
  const std::int64_t stride = panels.product.cRow * 4;
  float* const c0 = panels.sums(row, col);
  float* const c1 = panels.sums(row + kSide, col);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (panels.adds()) {
    _tile_loadd(0, c0, stride);
    if constexpr (kCols > 1) _tile_loadd(1, c0 + kSide, stride);
    if constexpr (kRows > 1) _tile_loadd(2, c1, stride);
    if constexpr (kRows > 1 && kCols > 1) _tile_loadd(3, c1 + kSide, stride);
  }
  const std::byte* const right = panels.right(col);
  for (std::int64_t at = 0; at < panels.depth() * kTileBytes; at += kTileBytes) {
    _tile_loadd(6, right + at, kRowBytes);
    if constexpr (kCols > 1) _tile_loadd(7, right + panels.product.right.panelBytes + at, kRowBytes);
    addProducts<kRows, kCols>(panels.product.left.data + panels.leftOffset(row) + at, panels.product.left.panelBytes);
    if (panels.errors)
      addProducts<kRows, kCols>(panels.errors + panels.leftOffset(row) + at, panels.product.left.panelBytes);
  }
  _tile_stored(0, c0, stride);
  if constexpr (kCols > 1) _tile_stored(1, c0 + kSide, stride);
  if constexpr (kRows > 1) _tile_stored(2, c1, stride);
  if constexpr (kRows > 1 && kCols > 1) _tile_stored(3, c1 + kSide, stride);
}

FUSELINE_TARGET_BF16_TILES void multiplyPacked(const TileProduct& p, const std::byte* errors) {
  const TileConfiguration configuration;
  _tile_loadconfig(&configuration);
  const Panels panels{p, errors};
  for (std::int64_t row = 0; row < p.m; row += 2 * kSide)
    for (std::int64_t col = 0; col < p.n; col += 2 * kSide) {
      const bool hasRows = row + kSide < p.m;
      const bool hasCols = col + kSide < p.n;
      if (hasRows && hasCols)
        multiplyPanels<2, 2>(panels, row, col);
      else if (hasRows)
        multiplyPanels<2, 1>(panels, row, col);
      else if (hasCols)
        multiplyPanels<1, 2>(panels, row, col);
      else
        multiplyPanels<1, 1>(panels, row, col);
    }
  _tile_release();
}

/// A is a tile of probabilities or of their gradients, whose rows are those of A or of its transpose.
template <bool hasErrors>
FUSELINE_TARGET_BF16 PackedTiles packScores(const TileProduct& p, Packing to) {
  if (p.aCol == 1)
    packAlongChannels<false, hasErrors>({.data = p.a, .stride = p.aRow, .count = p.m, .channels = p.k}, to);
  else
    packAlongRows<true, hasErrors>({.data = p.a, .stride = p.aCol, .count = p.k, .channels = p.m}, to);
  return placedLeft(to.numbers, p.k);
}

#endif

}  // namespace

bool canMultiplyBf16Tiles() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && mayUseTileRegisters();
#else
  return false;
#endif
}

std::int64_t packedBytes(std::int64_t count, std::int64_t channels) {
  return roundedUp(count, kPackedRows) * roundedUp(channels, kPackedRows) * 2;
}

#if defined(__x86_64__)

PackedTiles packLeft(const RowBlock& rows, std::byte* to) {
  packAlongChannels<false, false>(rows, {to});
  return placedLeft(to, rows.channels);
}

PackedTiles packRight(const RowBlock& rows, std::byte* to) {
  packAlongRows<false, false>(rows, {to});
  PackedTiles tiles = placedRight(to, rows.count);
  tiles.isFinite = attentionFunctions().isFinite(rows.data, rows.stride, rows.count, rows.channels);
  return tiles;
}

PackedTiles packRightTransposed(const RowBlock& rows, std::byte* to) {
  packAlongChannels<true, false>(rows, {to});
  return placedLeft(to, rows.channels);
}

void TileProducts::multiply(const TileProduct& product) const {
  if (!product.right.data) return attentionFunctions().multiply(product);
  if (product.keep) multiplyRows(product);
  if (product.left.data) return multiplyPacked(product, nullptr);
  TileProduct packed = product;
  std::byte* const errors = product.mayRoundLeft ? nullptr : m_errors;
  packed.left = errors ? packScores<true>(product, {m_left, errors}) : packScores<false>(product, {m_left});
  multiplyPacked(packed, errors);
}

#else

PackedTiles packLeft(const RowBlock&, std::byte*) { return {}; }
PackedTiles packRight(const RowBlock&, std::byte*) { return {}; }
PackedTiles packRightTransposed(const RowBlock&, std::byte*) { return {}; }
void TileProducts::multiply(const TileProduct& product) const { attentionFunctions().multiply(product); }

#endif

PackedTiles placedLeft(const std::byte* data, std::int64_t channels) {
  return {.data = data, .panelBytes = depthOf(channels) * kTileBytes};
}

PackedTiles placedRight(const std::byte* data, std::int64_t count) {
  return {.data = data, .panelBytes = depthOf(count) * kTileBytes};
}

PackedTiles leftFrom(const PackedTiles& tiles, std::int64_t row) {
  PackedTiles rest = tiles;
  if (rest.data) rest.data += row / kSide * tiles.panelBytes;
  return rest;
}

PackedTiles rightFrom(const PackedTiles& tiles, std::int64_t row) {
  PackedTiles rest = tiles;
  if (rest.data) rest.data += row / kPackedRows * kTileBytes;
  return rest;
}

TileProducts::TileProducts(bool areOfBf16, WorkspaceCutter& cutter) : m_areOfBf16(areOfBf16) {
  if (!areOfBf16) return;
  m_left = cutter.bytes(packedBytes(kTileQueries, kTileKeys));
  m_errors = cutter.bytes(packedBytes(kTileQueries, kTileKeys));
}

}  // namespace fuseline::cpu
