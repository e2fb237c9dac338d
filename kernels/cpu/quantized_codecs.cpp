// Casts to and from 8 and 4 bits, compiled for every instruction set and chosen at run time.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantized_codecs.h"

#include "core/numerics/minifloat.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantized_codecs.cpp"
#include <hwy/foreach_target.h>  // includes this file once per instruction set

#include <hwy/cache_control.h>

#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fuseline::cpu {
namespace HWY_NAMESPACE {

using DBytes = hn::Rebind<std::uint8_t, D>;
using VBytes = hn::Vec<DBytes>;

/// Elements that are converted before their codes are packed in pairs; they stay in the cache meanwhile.
constexpr std::size_t kStrip = 512;

// ---- one vector

/// The integer algorithm of core/numerics/minifloat.h; magnitudes fit a signed integer, which is faster to compare.
template <class Format>
HWY_INLINE VBytes codesOf(V value) {
  const DInt d;
  const auto set = [&](std::uint32_t bits) { return hn::Set(d, static_cast<std::int32_t>(bits)); };
  constexpr int kDropped = Format::kDroppedBits;
  const auto bits = hn::BitCast(d, value);
  const auto magnitude = hn::And(bits, set(0x7fffffffu));
  const auto tieToEven = hn::And(hn::ShiftRight<kDropped>(magnitude), set(1));
  const auto rounded = hn::Add(hn::Add(magnitude, set((1u << (kDropped - 1)) - 1u)), tieToEven);
  const auto normal = hn::Sub(hn::ShiftRight<kDropped>(rounded), set(Format::kRebias));
  const V aligner = hn::Set(D(), Format::kSubnormalAligner);
  const auto subnormal = hn::Sub(hn::BitCast(d, hn::Add(hn::Abs(value), aligner)), hn::BitCast(d, aligner));
  const auto code = hn::IfThenElse(hn::Lt(magnitude, set(Format::kMinNormalBits)), subnormal, normal);
  const auto sign =
      hn::And(hn::BitCast(d, hn::ShiftRight<32 - Format::kBits>(hn::BitCast(DBits(), bits))), set(Format::kSign));
  const auto number = hn::Or(hn::Min(code, set(Format::kMax)), sign);
  const auto all = hn::IfThenElse(hn::Gt(magnitude, set(0x7f800000u)), set(Format::kNan), number);
  return hn::TruncateTo(DBytes(), hn::BitCast(DBits(), all));
}

/// Exponent and mantissa of a code are those of a binary16 with another bias, subnormals included.
template <class Format>
HWY_INLINE V valuesOf(VBytes codes) {
  const DHalfBits d;
  const auto wide = hn::PromoteTo(d, codes);
  const auto set = [&](std::uint32_t bits) { return hn::Set(d, static_cast<std::uint16_t>(bits)); };
  const auto sign = hn::ShiftLeft<16 - Format::kBits>(hn::And(wide, set(Format::kSign)));
  const auto magnitude = hn::ShiftLeft<10 - Format::kMantissaBits>(hn::And(wide, set(Format::kSign - 1u)));
  const V half = promoteHalf(hn::Or(sign, magnitude));
  const V value = hn::Mul(half, splat(static_cast<double>(1 << (15 - Format::kBias))));
  if constexpr (Format::kSpecials != Specials::NanOnly) return value;
  const V largest = hn::Set(D(), Format::toFloat(Format::kMax));
  const V nan = hn::BitCast(D(), hn::Set(DBits(), 0x7fc00000u));
  return hn::IfThenElse(hn::Gt(hn::Abs(value), largest), nan, value);
}

// ---- one code a byte

/// Elements that are asked for ahead, because beyond the cache a core would wait for them: bf16 to E4M3 at 0.87 instead
/// of 0.60 of the speed of a copy (measured 2026-11, one thread of a 2-core Xeon; 512 ahead: 0.77).
constexpr std::size_t kAhead = 1024;

template <class Format, class From>
void encode(std::uint8_t* out, const From* in, float scale, std::size_t n) {
  const V factor = hn::Set(D(), scale);
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hwy::Prefetch(in + i + kAhead);
    hn::StoreU(codesOf<Format>(hn::Mul(load(in + i), factor)), DBytes(), out + i);
  }
  if (i == n) return;
  HWY_ALIGN std::uint8_t rest[HWY_MAX_BYTES / sizeof(float)];
  hn::StoreU(codesOf<Format>(hn::Mul(loadTail(in + i, n - i), factor)), DBytes(), rest);
  std::copy_n(rest, n - i, out + i);
}

template <class Format, class To>
void decode(To* out, const std::uint8_t* in, float scale, std::size_t n) {
  const V factor = hn::Set(D(), scale);
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V first = hn::Mul(valuesOf<Format>(hn::LoadU(DBytes(), in + i)), factor);
    const V second = hn::Mul(valuesOf<Format>(hn::LoadU(DBytes(), in + i + lanes)), factor);
    storePair(first, second, out + i);
  }
  for (; i + lanes <= n; i += lanes) store(hn::Mul(valuesOf<Format>(hn::LoadU(DBytes(), in + i)), factor), out + i);
  if (i == n) return;
  HWY_ALIGN std::uint8_t rest[HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy_n(in + i, n - i, rest);
  storeTail(hn::Mul(valuesOf<Format>(hn::LoadU(DBytes(), rest)), factor), out + i, n - i);
}

// ---- one code a byte, a scale for each

template <class Format, class From>
void encodeEach(std::uint8_t* out, const void* from, const float* scales, std::size_t n) {
  const auto* const in = static_cast<const From*>(from);
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hwy::Prefetch(in + i + kAhead);
    hn::StoreU(codesOf<Format>(hn::Mul(load(in + i), load(scales + i))), DBytes(), out + i);
  }
  if (i == n) return;
  HWY_ALIGN std::uint8_t rest[HWY_MAX_BYTES / sizeof(float)];
  hn::StoreU(codesOf<Format>(hn::Mul(loadTail(in + i, n - i), loadTail(scales + i, n - i))), DBytes(), rest);
  std::copy_n(rest, n - i, out + i);
}

template <class Format, class To>
void decodeEach(void* to, const std::uint8_t* in, const float* scales, std::size_t n) {
  auto* const out = static_cast<To*>(to);
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    store(hn::Mul(valuesOf<Format>(hn::LoadU(DBytes(), in + i)), load(scales + i)), out + i);
  if (i == n) return;
  HWY_ALIGN std::uint8_t rest[HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy_n(in + i, n - i, rest);
  storeTail(hn::Mul(valuesOf<Format>(hn::LoadU(DBytes(), rest)), loadTail(scales + i, n - i)), out + i, n - i);
}

// ---- one code a byte, to bf16

#if HWY_TARGET != HWY_SCALAR

using DCodes = hn::ScalableTag<std::uint8_t>;
using DWords = hn::Repartition<std::int16_t, DCodes>;
using HalfCodes = hn::Vec<hn::Half<DCodes>>;

/// The bytes of the bf16 numbers of the first codes, which are the subnormal ones.
template <class Format>
struct FirstNumbers {
  alignas(16) std::uint8_t low[16] = {};
  alignas(16) std::uint8_t high[16] = {};

  constexpr FirstNumbers() {
    for (std::uint8_t code = 0; code < 16; ++code) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(Format::toFloat(code)) >> 16;
      low[code] = static_cast<std::uint8_t>(bits);
      high[code] = static_cast<std::uint8_t>(bits >> 8);
    }
  }
};

/// Exponent and mantissa move to their places in bf16; subnormal codes, which have no exponent, are given in two bytes.
template <class Format>
HWY_INLINE hn::Vec<DWords> bf16Of(HalfCodes codes, HalfCodes low, HalfCodes high) {
  const DWords d;
  const auto set = [&](std::uint32_t bits) { return hn::Set(d, static_cast<std::int16_t>(bits)); };
  constexpr int kMantissa = Format::kMantissaBits;
  const auto wide = hn::PromoteTo(d, codes);
  const auto magnitude = hn::And(wide, set(Format::kSign - 1u));
  const auto sign = hn::ShiftLeft<8>(hn::And(wide, set(Format::kSign)));
  const auto normal = hn::Add(hn::ShiftLeft<7 - kMantissa>(magnitude), set((127u - Format::kBias) << 7));
  const auto subnormal = hn::Or(hn::PromoteTo(d, low), hn::ShiftLeft<8>(hn::PromoteTo(d, high)));
  const auto number = hn::IfThenElse(hn::Lt(magnitude, set(1u << kMantissa)), subnormal, normal);
  const auto nan = set(0x7fc0u);
  auto special = nan;
  if constexpr (Format::kSpecials == Specials::InfinityAndNan)
    special = hn::IfThenElse(hn::Gt(magnitude, set(Format::kInfinity)), nan, set(0x7f80u));
  return hn::Or(hn::IfThenElse(hn::Gt(magnitude, set(Format::kMax)), special, number), sign);
}

template <class Format>
HWY_INLINE void decodeVector(const std::uint8_t* in, Bf16* out) {
  static constexpr FirstNumbers<Format> kFirst;
  const DCodes d;
  const hn::Half<DCodes> half;
  const auto codes = hn::LoadU(d, in);
  const auto index = hn::And(codes, hn::Set(d, static_cast<std::uint8_t>((1 << Format::kMantissaBits) - 1)));
  const auto low = hn::TableLookupBytes(hn::LoadDup128(d, kFirst.low), index);
  const auto high = hn::TableLookupBytes(hn::LoadDup128(d, kFirst.high), index);
  auto* const words = reinterpret_cast<std::int16_t*>(&out->bits);
  hn::StoreU(bf16Of<Format>(hn::LowerHalf(half, codes), hn::LowerHalf(half, low), hn::LowerHalf(half, high)), DWords(),
             words);
  hn::StoreU(bf16Of<Format>(hn::UpperHalf(half, codes), hn::UpperHalf(half, low), hn::UpperHalf(half, high)), DWords(),
             words + hn::Lanes(DWords()));
}

/// bf16 holds every number of the format, so that nothing is rounded.
template <class Format>
void decodeExactly(Bf16* out, const std::uint8_t* in, std::size_t n) {
  const std::size_t lanes = hn::Lanes(DCodes());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) decodeVector<Format>(in + i, out + i);
  if (i == n) return;
  HWY_ALIGN std::uint8_t codes[HWY_MAX_BYTES] = {};
  HWY_ALIGN Bf16 numbers[HWY_MAX_BYTES];
  std::copy_n(in + i, n - i, codes);
  decodeVector<Format>(codes, numbers);
  std::copy_n(numbers, n - i, out + i);
}

#else

template <class Format>
void decodeExactly(Bf16* out, const std::uint8_t* in, std::size_t n) {
  decode<Format>(out, in, 1.0F, n);
}

#endif

// ---- two codes a byte

/// One code a byte, seen in pairs.
struct Strip {
  HWY_ALIGN std::uint16_t pairs[kStrip / 2];
  std::uint8_t* codes() { return reinterpret_cast<std::uint8_t*>(pairs); }
};

using DPairs = hn::ScalableTag<std::uint16_t>;
using DPacked = hn::Rebind<std::uint8_t, DPairs>;

/// Writes one byte for two codes, (n + 1) / 2 in all. What follows the n-th code becomes 0.
void packPairs(std::uint8_t* out, Strip& strip, std::size_t n) {
  std::fill(strip.codes() + n, strip.codes() + kStrip, std::uint8_t{0});
  const DPairs d;
  HWY_ALIGN std::uint8_t packed[kStrip / 2];
  for (std::size_t i = 0; 2 * i < n; i += hn::Lanes(d)) {
    const auto pair = hn::Load(d, strip.pairs + i);
    const auto both = hn::And(hn::Or(pair, hn::ShiftRight<4>(pair)), hn::Set(d, std::uint16_t{0xff}));
    hn::StoreU(hn::TruncateTo(DPacked(), both), DPacked(), packed + i);
  }
  std::copy_n(packed, (n + 1) / 2, out);
}

/// The inverse.
void unpackPairs(Strip& strip, const std::uint8_t* in, std::size_t n) {
  HWY_ALIGN std::uint8_t packed[kStrip / 2];
  std::copy_n(in, (n + 1) / 2, packed);
  std::fill(packed + (n + 1) / 2, packed + kStrip / 2, std::uint8_t{0});
  const DPairs d;
  for (std::size_t i = 0; 2 * i < n; i += hn::Lanes(d)) {
    const auto both = hn::PromoteTo(d, hn::LoadU(DPacked(), packed + i));
    hn::Store(hn::And(hn::Or(both, hn::ShiftLeft<4>(both)), hn::Set(d, std::uint16_t{0x0f0f})), d, strip.pairs + i);
  }
}

// ---- functions by format and dtype

template <class Format, class From>
void quantize(std::uint8_t* out, const void* from, float scale, std::size_t n) {
  const auto* const in = static_cast<const From*>(from);
  if constexpr (Format::kBits == 8) return encode<Format>(out, in, scale, n);
  Strip strip;
  for (std::size_t i = 0; i < n; i += kStrip) {
    const std::size_t count = std::min(kStrip, n - i);
    encode<Format>(strip.codes(), in + i, scale, count);
    packPairs(out + i / 2, strip, count);
  }
}

template <class Format, class To>
void dequantize(void* to, const std::uint8_t* in, float scale, std::size_t n) {
  auto* const out = static_cast<To*>(to);
  if constexpr (Format::kBits == 8 && std::is_same_v<To, Bf16>)
    if (scale == 1.0F) return decodeExactly<Format>(out, in, n);
  if constexpr (Format::kBits == 8) return decode<Format>(out, in, scale, n);
  Strip strip;
  for (std::size_t i = 0; i < n; i += kStrip) {
    const std::size_t count = std::min(kStrip, n - i);
    unpackPairs(strip, in + i / 2, count);
    decode<Format>(out + i, strip.codes(), scale, count);
  }
}

template <class Element>
QuantizeFunction quantizeFrom(ElementFormat format) {
  return visitFormat(format, [](auto codec) -> QuantizeFunction { return quantize<decltype(codec), Element>; });
}

template <class Element>
DequantizeFunction dequantizeTo(ElementFormat format) {
  return visitFormat(format, [](auto codec) -> DequantizeFunction { return dequantize<decltype(codec), Element>; });
}

template <class Element>
QuantizeEachFunction quantizeEachFrom(ElementFormat format) {
  return visitFormat(format, [](auto codec) -> QuantizeEachFunction { return encodeEach<decltype(codec), Element>; });
}

template <class Element>
DequantizeEachFunction dequantizeEachTo(ElementFormat format) {
  return visitFormat(format, [](auto codec) -> DequantizeEachFunction { return decodeEach<decltype(codec), Element>; });
}

QuantizeEachFunction findQuantizeEach(ElementFormat format, DType from) {
  if (from == DType::F32) return quantizeEachFrom<float>(format);
  return from == DType::F16 ? quantizeEachFrom<F16>(format) : quantizeEachFrom<Bf16>(format);
}

DequantizeEachFunction findDequantizeEach(ElementFormat format, DType to) {
  if (to == DType::F32) return dequantizeEachTo<float>(format);
  return to == DType::F16 ? dequantizeEachTo<F16>(format) : dequantizeEachTo<Bf16>(format);
}

QuantizeFunction findQuantize(ElementFormat format, DType from) {
  if (from == DType::F32) return quantizeFrom<float>(format);
  return from == DType::F16 ? quantizeFrom<F16>(format) : quantizeFrom<Bf16>(format);
}

DequantizeFunction findDequantize(ElementFormat format, DType to) {
  if (to == DType::F32) return dequantizeTo<float>(format);
  return to == DType::F16 ? dequantizeTo<F16>(format) : dequantizeTo<Bf16>(format);
}

}  // namespace HWY_NAMESPACE
}  // namespace fuseline::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fuseline::cpu {

HWY_EXPORT(findQuantize);
HWY_EXPORT(findDequantize);
HWY_EXPORT(findQuantizeEach);
HWY_EXPORT(findDequantizeEach);

QuantizeFunction quantizeFunction(ElementFormat format, DType from) {
  return HWY_DYNAMIC_DISPATCH(findQuantize)(format, from);
}

DequantizeFunction dequantizeFunction(ElementFormat format, DType to) {
  return HWY_DYNAMIC_DISPATCH(findDequantize)(format, to);
}

QuantizeEachFunction quantizeEachFunction(ElementFormat format, DType from) {
  return HWY_DYNAMIC_DISPATCH(findQuantizeEach)(format, from);
}

DequantizeEachFunction dequantizeEachFunction(ElementFormat format, DType to) {
  return HWY_DYNAMIC_DISPATCH(findDequantizeEach)(format, to);
}

}  // namespace fuseline::cpu
#endif
