// AMX by intrinsics, because Highway has none. Three loops: columns of C by 16 (the threads share them), K by 32, rows
// of C by 16. Tiles are those of Intel's manual: A 16 x 32 numbers, B 16 x 16 pairs of them, C 16 x 16 sums.
// With 1 to 64 rows 1.61 to 2.00 times as fast as the library's GEMM in bf16 (medians of 15 sizes with N and K of 4096
// and 11008; bench_coded_gemm, measured 2026-11, 2-core Xeon with AMX).
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/coded_gemm.h"

#include "core/numerics/bf16.h"
#include "kernels/cpu/machine/tile_registers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include <omp.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define FUSELINE_TARGET_AMX __attribute__((target("avx512f,avx512bw,avx512vbmi,amx-tile,amx-bf16")))
#endif

namespace fuseline::cpu {

namespace {

constexpr std::int64_t kTileRows = 16;   // of A and C; of B, whose rows are pairs of rows of the matrix
constexpr std::int64_t kTileCols = 16;   // of B and C
constexpr std::int64_t kTileDepth = 32;  // numbers along K
constexpr std::int64_t kTileCodes = kTileDepth * kTileCols;
constexpr std::int64_t kTileBytes = 1024;  // of numbers or sums
/// Encoded values that one step decodes: four pairs of lanes, each from two rows of the tile.
constexpr std::int64_t kChunk = 64;
/// Prefetch distance of encoded values. Without it the CPU's own prefetching keeps a core waiting: 3.1 instead of 2.3
/// ms for 4096 x 11008 values (measured 2026-11, 2-core Xeon with AMX; 1 to 16 KiB ahead differ little).
constexpr std::int64_t kPrefetchBytes = 4096;

std::int64_t tilesOf(std::int64_t extent, std::int64_t tile) { return (extent + tile - 1) / tile; }

/// Offset of a pair of encoded values (K, K + 1) of a column in its tile: unpacking the bytes of a chunk gives two
/// rows.
std::int64_t pairOffset(std::int64_t pair, std::int64_t col) {
  return pair / 2 * kChunk + col / 4 * 16 + pair % 2 * 8 + col % 4 * 2;
}

/// Packs 32 encoded values along K of each of 16 columns; values beyond the matrix are 0.
void packTile(const std::byte* codes, std::int64_t k, std::int64_t cols, std::int64_t depth, std::byte* packed) {
  std::memset(packed, 0, kTileCodes);
  for (std::int64_t col = 0; col < cols; ++col)
    for (std::int64_t i = 0; i < depth; ++i) packed[pairOffset(i / 2, col) + i % 2] = codes[col * k + i];
}

/// Packs A's rows in tiles that are contiguous along K, with zeros beyond its end.
void packRows(const std::byte* a, std::int64_t k, std::int64_t rows, std::byte* tiles) {
  const std::int64_t depth = tilesOf(k, kTileDepth);
  std::memset(tiles, 0, static_cast<std::size_t>(tilesOf(rows, kTileRows) * depth * kTileBytes));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < depth; ++i) {
      std::byte* const to = tiles + (row / kTileRows * depth + i) * kTileBytes + row % kTileRows * 64;
      const std::int64_t count = std::min(kTileDepth, k - i * kTileDepth);
      std::memcpy(to, a + (row * k + i * kTileDepth) * 2, static_cast<std::size_t>(count * 2));
    }
}

#if defined(__x86_64__)

/// The two bytes of the bf16 number of every code without its sign.
struct ByteTables {
  alignas(64) std::array<std::uint8_t, 128> low = {};
  alignas(64) std::array<std::uint8_t, 128> high = {};
};

template <class Format>
constexpr ByteTables makeTables() {
  ByteTables tables;
  for (std::uint8_t code = 0; code < 128; ++code) {
    const std::uint16_t bits = floatToBf16(Format::toFloat(code));
    tables.low[code] = static_cast<std::uint8_t>(bits);
    tables.high[code] = static_cast<std::uint8_t>(bits >> 8);
  }
  return tables;
}

const ByteTables& tablesOf(ElementFormat format) {
  static constexpr ByteTables kE4m3 = makeTables<E4m3>();
  static constexpr ByteTables kE5m2 = makeTables<E5m2>();
  return format == ElementFormat::E5M2 ? kE5m2 : kE4m3;
}

struct Decoder {
  __m512i low[2];
  __m512i high[2];
};

FUSELINE_TARGET_AMX inline Decoder decoderOf(const ByteTables& tables) {
  return {{_mm512_load_si512(tables.low.data()), _mm512_load_si512(tables.low.data() + 64)},
          {_mm512_load_si512(tables.high.data()), _mm512_load_si512(tables.high.data() + 64)}};
}

FUSELINE_TARGET_AMX inline void decodeTile(const Decoder& decoder, const std::byte* codes, std::byte* numbers) {
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  for (std::int64_t chunk = 0; chunk < kTileCodes / kChunk; ++chunk) {
    const __m512i code = _mm512_loadu_si512(codes + chunk * kChunk);
    _mm_prefetch(reinterpret_cast<const char*>(codes + chunk * kChunk + kPrefetchBytes), _MM_HINT_T0);
    const __m512i low = _mm512_permutex2var_epi8(decoder.low[0], code, decoder.low[1]);
    const __m512i magnitude = _mm512_permutex2var_epi8(decoder.high[0], code, decoder.high[1]);
    const __m512i high = _mm512_or_si512(magnitude, _mm512_and_si512(code, sign));
    _mm512_store_si512(numbers + chunk * 2 * kChunk, _mm512_unpacklo_epi8(low, high));
    _mm512_store_si512(numbers + chunk * 2 * kChunk + kChunk, _mm512_unpackhi_epi8(low, high));
  }
}

/// Tiles 0 to 3 hold sums of up to 64 rows, 4 and 6 numbers of B, 5 and 7 of A.
template <int kPanels>
FUSELINE_TARGET_AMX void multiplyTile(const std::byte* a, std::int64_t panelBytes, const std::byte* b) {
  _tile_loadd(4, b, 64);
  _tile_loadd(5, a, 64);
  _tile_dpbf16ps(0, 5, 4);
  if constexpr (kPanels > 1) {
    _tile_loadd(7, a + panelBytes, 64);
    _tile_dpbf16ps(1, 7, 4);
  }
  if constexpr (kPanels > 2) {
    _tile_loadd(5, a + 2 * panelBytes, 64);
    _tile_dpbf16ps(2, 5, 4);
  }
  if constexpr (kPanels > 3) {
    _tile_loadd(7, a + 3 * panelBytes, 64);
    _tile_dpbf16ps(3, 7, 4);
  }
}

/// 16 columns of the result. a: tiles; codes: encoded values of 16 columns of B, tile by tile; sums: kPanels tiles.
template <int kPanels>
FUSELINE_TARGET_AMX void multiplyColumns(const std::byte* a, std::int64_t depth, const std::byte* codes,
                                         const Decoder& decoder, std::byte* sums) {
  alignas(64) std::byte numbers[4][kTileBytes];  // decoded ahead of the loads that wait for them
  _tile_zero(0);
  if constexpr (kPanels > 1) _tile_zero(1);
  if constexpr (kPanels > 2) _tile_zero(2);
  if constexpr (kPanels > 3) _tile_zero(3);
  for (std::int64_t i = 0; i < depth; ++i) {
    decodeTile(decoder, codes + i * kTileCodes, numbers[i % 4]);
    multiplyTile<kPanels>(a + i * kTileBytes, depth * kTileBytes, numbers[i % 4]);
  }
  _tile_stored(0, sums, 64);
  if constexpr (kPanels > 1) _tile_stored(1, sums + kTileBytes, 64);
  if constexpr (kPanels > 2) _tile_stored(2, sums + 2 * kTileBytes, 64);
  if constexpr (kPanels > 3) _tile_stored(3, sums + 3 * kTileBytes, 64);
}

using MultiplyColumns = void (*)(const std::byte*, std::int64_t, const std::byte*, const Decoder&, std::byte*);
constexpr MultiplyColumns kMultiplyColumns[] = {multiplyColumns<1>, multiplyColumns<2>, multiplyColumns<3>,
                                                multiplyColumns<4>};
static_assert(std::size(kMultiplyColumns) * kTileRows == kMostCodedRows);

#endif

/// Data shared by the threads.
struct Product {
  const std::byte* a = nullptr;  // in tiles
  const std::byte* b = nullptr;  // packed
  std::byte* c = nullptr;
  DType cType = DType::F32;
  float scale = 1.0F;
  std::int64_t rows = 0;
  std::int64_t n = 0;
  std::int64_t depth = 0;  // tiles along K
  ElementFormat format = ElementFormat::E4M3;
};

/// Rounds sums to C's elements. count: at most kTileCols.
void storeSums(const Product& product, const float* sums, std::int64_t first, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = sums[i] * product.scale;
    if (product.cType == DType::F32)
      reinterpret_cast<float*>(product.c)[first + i] = value;
    else
      reinterpret_cast<std::uint16_t*>(product.c)[first + i] = floatToBf16(value);
  }
}

/// Blocks [begin, end) of 16 columns.
#if defined(__x86_64__)
FUSELINE_TARGET_AMX void multiplyBlocks(const Product& product, std::int64_t begin, std::int64_t end) {
  alignas(64) float sums[kMostCodedRows * kTileCols];
  const Decoder decoder = decoderOf(tablesOf(product.format));
  const MultiplyColumns multiply = kMultiplyColumns[tilesOf(product.rows, kTileRows) - 1];
  const TileConfiguration configuration;
  _tile_loadconfig(&configuration);
  for (std::int64_t block = begin; block < end; ++block) {
    const std::byte* const codes = product.b + block * product.depth * kTileCodes;
    multiply(product.a, product.depth, codes, decoder, reinterpret_cast<std::byte*>(sums));
    const std::int64_t cols = std::min(kTileCols, product.n - block * kTileCols);
    for (std::int64_t row = 0; row < product.rows; ++row)
      storeSums(product, sums + row * kTileCols, row * product.n + block * kTileCols, cols);
  }
  _tile_release();
}
#else
void multiplyBlocks(const Product&, std::int64_t, std::int64_t) {}
#endif

}  // namespace

bool canMultiplyCodes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vbmi") && mayUseTileRegisters();
#else
  return false;
#endif
}

CodedGemm::CodedGemm(std::int64_t m, std::int64_t n, std::int64_t k, ElementFormat format)
    : m_m(m), m_n(n), m_k(k), m_format(format) {}

std::size_t CodedGemm::packedBytes() const {
  return static_cast<std::size_t>(tilesOf(m_n, kTileCols) * tilesOf(m_k, kTileDepth) * kTileCodes);
}

std::size_t CodedGemm::workspaceBytes() const {
  return static_cast<std::size_t>(tilesOf(m_m, kTileRows) * tilesOf(m_k, kTileDepth) * kTileBytes);
}

void CodedGemm::pack(const std::byte* codes, std::byte* packed) const {
  const std::int64_t depth = tilesOf(m_k, kTileDepth);
#pragma omp parallel for schedule(static)
  for (std::int64_t tile = 0; tile < tilesOf(m_n, kTileCols) * depth; ++tile) {
    const std::int64_t col = tile / depth * kTileCols;
    const std::int64_t first = tile % depth * kTileDepth;
    packTile(codes + col * m_k + first, m_k, std::min(kTileCols, m_n - col), std::min(kTileDepth, m_k - first),
             packed + tile * kTileCodes);
  }
}

void CodedGemm::multiply(const std::byte* a, const std::byte* packed, float scale, std::byte* c, DType cType,
                         std::int64_t rows, std::byte* workspace) const {
  packRows(a, m_k, rows, workspace);
  const Product product{.a = workspace,
                        .b = packed,
                        .c = c,
                        .cType = cType,
                        .scale = scale,
                        .rows = rows,
                        .n = m_n,
                        .depth = tilesOf(m_k, kTileDepth),
                        .format = m_format};
  const std::int64_t numBlocks = tilesOf(m_n, kTileCols);
#pragma omp parallel
  {
    const std::int64_t part = omp_get_thread_num();
    const std::int64_t parts = omp_get_num_threads();
    multiplyBlocks(product, numBlocks * part / parts, numBlocks * (part + 1) / parts);
  }
}

}  // namespace fuseline::cpu
