// Compiled for every instruction set and chosen at run time.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantize/block_functions.h"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantize/block_functions.cpp"
#include <hwy/foreach_target.h>  // includes this file once per instruction set

#include <hwy/cache_control.h>

#include "kernels/cpu/elementwise/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fuseline::cpu {
namespace HWY_NAMESPACE {

// ---- largest magnitudes

/// Prefetch distance in elements, because a core would wait for data beyond the cache.
constexpr std::size_t kAhead = 2048;

/// The magnitude where it is larger; a NaN never is.
HWY_INLINE V raised(V amax, V values) {
  const V magnitudes = hn::Abs(values);
  return hn::IfThenElse(hn::Gt(magnitudes, amax), magnitudes, amax);
}

/// Two chains of comparisons, because one would wait for itself.
template <class T>
HWY_INLINE float amaxOf(const void* from, std::size_t n) {
  const auto* const values = static_cast<const T*>(from);
  const std::size_t lanes = hn::Lanes(D());
  V even = hn::Zero(D());
  V odd = hn::Zero(D());
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    even = raised(even, load(values + i));
    odd = raised(odd, load(values + i + lanes));
  }
  for (; i < n; i += lanes) even = raised(even, loadTail(values + i, std::min(lanes, n - i)));
  return hn::GetLane(hn::MaxOfLanes(D(), hn::Max(even, odd)));
}

#if HWY_TARGET != HWY_SCALAR

/// Magnitudes of bf16 have the order of their bits; NaN is above all others.
template <>
HWY_INLINE float amaxOf<Bf16>(const void* from, std::size_t n) {
  const hn::ScalableTag<std::int16_t> d;
  const auto* const bits = static_cast<const std::int16_t*>(from);
  const std::size_t lanes = hn::Lanes(d);
  const auto magnitudes = [&](const std::int16_t* at) HWY_ATTR {
    const auto all = hn::And(hn::LoadU(d, at), hn::Set(d, std::int16_t{0x7fff}));
    return hn::IfThenZeroElse(hn::Gt(all, hn::Set(d, std::int16_t{0x7f80})), all);
  };
  auto even = hn::Zero(d);
  auto odd = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    hwy::Prefetch(bits + i + kAhead);
    even = hn::Max(even, magnitudes(bits + i));
    odd = hn::Max(odd, magnitudes(bits + i + lanes));
  }
  if (i + lanes <= n) {
    even = hn::Max(even, magnitudes(bits + i));
    i += lanes;
  }
  if (i < n) {
    HWY_ALIGN std::int16_t rest[HWY_MAX_BYTES / sizeof(std::int16_t)] = {};
    std::copy_n(bits + i, n - i, rest);
    odd = hn::Max(odd, magnitudes(rest));
  }
  const hn::Repartition<std::int32_t, decltype(d)> wide;
  const hn::Half<decltype(d)> half;
  const auto all = hn::Max(even, odd);
  const auto largest =
      hn::Max(hn::PromoteTo(wide, hn::LowerHalf(half, all)), hn::PromoteTo(wide, hn::UpperHalf(half, all)));
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(wide, largest)) << 16);
}

#endif

template <class T>
void raiseAmaxes(float* amaxes, const void* from, std::size_t n) {
  const auto* const values = static_cast<const T*>(from);
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(raised(load(amaxes + i), load(values + i)), amaxes + i);
  if (i < n) storeTail(raised(loadTail(amaxes + i, n - i), loadTail(values + i, n - i)), amaxes + i, n - i);
}

template <class T>
void raiseBlocks(float* amaxes, const void* from, std::size_t width, std::size_t n) {
  const auto* const values = static_cast<const T*>(from);
  for (std::size_t i = 0; i < n; i += width, ++amaxes)
    *amaxes = std::max(*amaxes, amaxOf<T>(values + i, std::min(width, n - i)));
}

// ---- factors

void scale(float* values, float factor, std::size_t n) {
  const V all = hn::Set(D(), factor);
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(hn::Mul(load(values + i), all), values + i);
  for (; i < n; ++i) values[i] *= factor;
}

// ---- transposition

// Arrays of vectors have no size where vectors have none.
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

constexpr std::size_t kBlock = 16;  // bytes; vectors are interleaved within such blocks

/// 16 rows with a vector's number of columns: block j of vector c becomes column 16 j + c. The same shuffle four times:
/// it interleaves the rows of both halves.
HWY_INLINE void transposeRows(const std::uint8_t* in, std::size_t inStride, std::uint8_t* columns) {
  const hn::CappedTag<std::uint8_t, kTransposedSide> d;
  hn::Vec<decltype(d)> rows[kBlock];
  for (std::size_t row = 0; row < kBlock; ++row) rows[row] = hn::LoadU(d, in + row * inStride);
  for (int step = 0; step < 4; ++step) {
    hn::Vec<decltype(d)> mixed[kBlock];
    for (std::size_t i = 0; i < kBlock / 2; ++i) {
      mixed[2 * i] = hn::InterleaveLower(d, rows[i], rows[i + kBlock / 2]);
      mixed[2 * i + 1] = hn::InterleaveUpper(d, rows[i], rows[i + kBlock / 2]);
    }
    std::copy_n(mixed, kBlock, rows);
  }
  for (std::size_t col = 0; col < kBlock; ++col) hn::Store(rows[col], d, columns + col * hn::Lanes(d));
}

/// Writes past the cache: whole lines that are not read soon need not be loaded before.
HWY_INLINE void streamLine(const std::uint8_t* line, std::uint8_t* out) {
  const hn::CappedTag<std::uint8_t, kTransposedSide> d;
  for (std::size_t i = 0; i < kTransposedSide; i += hn::Lanes(d)) hn::Stream(hn::Load(d, line + i), d, out + i);
}

/// Whole lines of the output are put together in the cache before they are written.
void transposeSquare(const std::uint8_t* in, std::size_t inStride, std::uint8_t* out, std::size_t outStride) {
  const std::size_t lanes = hn::Lanes(hn::CappedTag<std::uint8_t, kTransposedSide>());
  HWY_ALIGN std::uint8_t columns[kBlock * kTransposedSide];
  HWY_ALIGN std::uint8_t lines[kTransposedSide * kTransposedSide];
  for (std::size_t row = 0; row < kTransposedSide; row += kBlock)
    for (std::size_t first = 0; first < kTransposedSide; first += lanes) {
      transposeRows(in + row * inStride + first, inStride, columns);
      for (std::size_t col = 0; col < lanes; ++col)
        std::memcpy(lines + (first + col) * kTransposedSide + row,
                    columns + col % kBlock * lanes + col / kBlock * kBlock, kBlock);
    }
  const bool isAligned = (reinterpret_cast<std::uintptr_t>(out) | outStride) % kTransposedSide == 0;
  for (std::size_t col = 0; col < kTransposedSide; ++col) {
    const std::uint8_t* const line = lines + col * kTransposedSide;
    if (isAligned)
      streamLine(line, out + col * outStride);
    else
      std::memcpy(out + col * outStride, line, kTransposedSide);
  }
  hwy::FlushStream();
}

#else

void transposeSquare(const std::uint8_t* in, std::size_t inStride, std::uint8_t* out, std::size_t outStride) {
  for (std::size_t col = 0; col < kTransposedSide; ++col)
    for (std::size_t row = 0; row < kTransposedSide; ++row) out[col * outStride + row] = in[row * inStride + col];
}

#endif

// ---- functions

AmaxFunction findAmax(DType dtype) {
  if (dtype == DType::F32) return amaxOf<float>;
  return dtype == DType::F16 ? amaxOf<F16> : amaxOf<Bf16>;
}

RaiseFunction findRaise(DType dtype) {
  if (dtype == DType::F32) return raiseAmaxes<float>;
  return dtype == DType::F16 ? raiseAmaxes<F16> : raiseAmaxes<Bf16>;
}

RaiseBlocksFunction findRaiseBlocks(DType dtype) {
  if (dtype == DType::F32) return raiseBlocks<float>;
  return dtype == DType::F16 ? raiseBlocks<F16> : raiseBlocks<Bf16>;
}

const BlockFunctions& findBlockFunctions() {
  static constexpr BlockFunctions kFunctions = {scale, transposeSquare};
  return kFunctions;
}

}  // namespace HWY_NAMESPACE
}  // namespace fuseline::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fuseline::cpu {

HWY_EXPORT(findAmax);
HWY_EXPORT(findRaise);
HWY_EXPORT(findRaiseBlocks);
HWY_EXPORT(findBlockFunctions);

AmaxFunction amaxFunction(DType dtype) { return HWY_DYNAMIC_DISPATCH(findAmax)(dtype); }

RaiseFunction raiseFunction(DType dtype) { return HWY_DYNAMIC_DISPATCH(findRaise)(dtype); }

RaiseBlocksFunction raiseBlocksFunction(DType dtype) { return HWY_DYNAMIC_DISPATCH(findRaiseBlocks)(dtype); }

const BlockFunctions& blockFunctions() { return HWY_DYNAMIC_DISPATCH(findBlockFunctions)(); }

}  // namespace fuseline::cpu
#endif
