// Peak loops: independent accumulators, nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/machine/peak_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/machine/peak_functions.cpp"
#include <hwy/foreach_target.h>  // includes this file once per instruction set

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fuseline::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Twelve chains hide a latency of four cycles at up to three multiply-adds a cycle.
double multiplyAdds(std::int64_t iterations, float& sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999F);
  const auto addend = hn::Set(d, 0.001F);
  // All chains start differently, or the compiler would find out that they are one.
  const auto start = [d](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
  auto a0 = start(1.00), a1 = start(1.01), a2 = start(1.02), a3 = start(1.03), a4 = start(1.04), a5 = start(1.05);
  auto b0 = start(1.06), b1 = start(1.07), b2 = start(1.08), b3 = start(1.09), b4 = start(1.10), b5 = start(1.11);
  for (std::int64_t i = 0; i < iterations; ++i) {
    a0 = hn::MulAdd(a0, factor, addend);
    a1 = hn::MulAdd(a1, factor, addend);
    a2 = hn::MulAdd(a2, factor, addend);
    a3 = hn::MulAdd(a3, factor, addend);
    a4 = hn::MulAdd(a4, factor, addend);
    a5 = hn::MulAdd(a5, factor, addend);
    b0 = hn::MulAdd(b0, factor, addend);
    b1 = hn::MulAdd(b1, factor, addend);
    b2 = hn::MulAdd(b2, factor, addend);
    b3 = hn::MulAdd(b3, factor, addend);
    b4 = hn::MulAdd(b4, factor, addend);
    b5 = hn::MulAdd(b5, factor, addend);
  }
  const auto a = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(a4, a5));
  const auto b = hn::Add(hn::Add(hn::Add(b0, b1), hn::Add(b2, b3)), hn::Add(b4, b5));
  sink += hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
  return 2.0 * 12.0 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(iterations);
}

}  // namespace HWY_NAMESPACE
}  // namespace fuseline::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#if defined(__x86_64__)
#include "kernels/cpu/machine/tile_registers.h"

#include <immintrin.h>

#include <algorithm>
#include <iterator>
#endif

namespace fuseline::cpu {

HWY_EXPORT(multiplyAdds);

double multiplyAddInRegisters(std::int64_t iterations, float& sink) {
  return HWY_DYNAMIC_DISPATCH(multiplyAdds)(iterations, sink);
}

#if defined(__x86_64__)

namespace {

constexpr int kChains = 12;
constexpr int kFlopsPerDot = 16 * 4;  // 16 lanes, two multiplications and two additions each

// Highway 1.0 has no bf16 dot product, so this one loop is written with intrinsics.
__attribute__((target("avx512f,avx512bf16"))) double bf16Dots(std::int64_t iterations, float& sink) {
  const __m512bh ones = (__m512bh)_mm512_set1_epi16(0x3f80);
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < iterations; ++i)
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, ones, ones);
  for (const __m512& sum : sums) sink += _mm512_reduce_add_ps(sum);
  return static_cast<double>(kChains * kFlopsPerDot) * static_cast<double>(iterations);
}

// AMX: a tile is 16 rows of 64 bytes; one instruction multiplies 16 x 32 by 32 x 16 elements.
constexpr int kTileRows = 16;
constexpr int kTileRowBytes = 64;
constexpr int kSumTiles = 4;
constexpr double kFlopsPerTile = 2.0 * 16 * 16 * 32;

/// Four tiles of sums from two tiles of each operand: the peak rate of a GEMM.
__attribute__((target("amx-tile,amx-bf16"))) double bf16Tiles(std::int64_t iterations, float& sink) {
  const TileConfiguration configuration;
  alignas(64) std::uint16_t ones[kTileRows * kTileRowBytes / 2];
  std::fill(std::begin(ones), std::end(ones), std::uint16_t{0x3f80});
  _tile_loadconfig(&configuration);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, ones, kTileRowBytes);
  _tile_loadd(5, ones, kTileRowBytes);
  _tile_loadd(6, ones, kTileRowBytes);
  _tile_loadd(7, ones, kTileRowBytes);
  for (std::int64_t i = 0; i < iterations; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  alignas(64) float sums[kTileRows * kTileRowBytes / 4];
  _tile_stored(0, sums, kTileRowBytes);
  _tile_release();
  sink += sums[0];
  return kSumTiles * kFlopsPerTile * static_cast<double>(iterations);
}

}  // namespace

double bf16TilesInRegisters(std::int64_t iterations, float& sink) {
  return mayUseTileRegisters() ? bf16Tiles(iterations, sink) : 0.0;
}

double bf16DotInRegisters(std::int64_t iterations, float& sink) {
  return __builtin_cpu_supports("avx512bf16") ? bf16Dots(iterations, sink) : 0.0;
}

#else

double bf16DotInRegisters(std::int64_t, float&) { return 0.0; }
double bf16TilesInRegisters(std::int64_t, float&) { return 0.0; }

#endif

}  // namespace fuseline::cpu
#endif
