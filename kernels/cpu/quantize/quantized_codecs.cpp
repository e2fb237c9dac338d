// Casts to and from 8 and 4 bits, compiled for every instruction set and chosen at run time.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantize/quantized_codecs.h"

#include "core/numerics/minifloat.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantize/quantized_codecs.cpp"
#include <hwy/foreach_target.h>  // includes this file once per instruction set

#include <hwy/cache_control.h>

#include "kernels/cpu/elementwise/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fuseline::cpu {
namespace HWY_NAMESPACE {

using DBytes = hn::Rebind<std::uint8_t, D>;
using VBytes = hn::Vec<DBytes>;

/// Elements that are converted before their encoded values are packed in pairs; they stay in the cache meanwhile.
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

/// Prefetch distance in elements, because a core would wait for data beyond the cache: bf16 to E4M3 at 0.87 instead of
/// 0.60 of the speed of a copy (measured 2026-11, one thread of a 2-core Xeon; 512 ahead: 0.77).
constexpr std::size_t kAhead = 1024;

template <class Format, class From>
HWY_INLINE void encode(std::uint8_t* out, const From* in, float scale, std::size_t n) {
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
HWY_INLINE void decode(To* out, const std::uint8_t* in, float scale, std::size_t n) {
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

// ---- one code a byte, from bf16, with powers of two

#if HWY_TARGET != HWY_SCALAR

using DWords = hn::ScalableTag<std::int16_t>;
using VWords = hn::Vec<DWords>;

HWY_INLINE VWords words(std::uint32_t bits) { return hn::Set(DWords(), static_cast<std::int16_t>(bits)); }

constexpr std::int32_t kNormalBf16 = 0x0080;  // the smallest normal number
constexpr std::int32_t kInfiniteBf16 = 0x7f80;

/// A multiplication by a power of two, in terms of bf16's bits.
struct Shift {
  std::int16_t added;  // to the exponent, in its bit position
  std::int16_t least;  // the smallest nonzero magnitude for which the factor and the result have normal encodings
};

HWY_INLINE bool isPowerOfTwo(float scale) {
  const auto bits = std::bit_cast<std::uint32_t>(scale);
  return (bits & 0x807fffffu) == 0 && bits != 0 && bits != 0x7f800000u;
}

/// Shift that multiplies by a power of two.
template <class Format>
HWY_INLINE Shift shiftOf(float scale) {
  const std::int32_t added = (std::bit_cast<std::int32_t>(scale) >> 16) - (127 << 7);
  const std::int32_t least = static_cast<std::int32_t>(Format::kMinNormalBits >> 16) - added;
  return {static_cast<std::int16_t>(added), static_cast<std::int16_t>(std::max(kNormalBf16, least))};
}

/// Encodes one vector of numbers, rounded in bf16's own bits: twice the lanes of float32. Returns false and writes
/// nothing if a number needs float32 arithmetic: a subnormal, infinity or NaN.
template <class Format>
HWY_INLINE bool encodeShifted(const Bf16* in, VWords added, VWords least, std::uint8_t* out) {
  const DWords d;
  constexpr int kDropped = 7 - Format::kMantissaBits;
  const VWords bits = hn::LoadU(d, reinterpret_cast<const std::int16_t*>(in));
  const VWords magnitude = hn::And(bits, words(0x7fff));
  const auto isZero = hn::Eq(magnitude, hn::Zero(d));
  const auto isSmall = hn::AndNot(isZero, hn::Lt(magnitude, least));
  if (!hn::AllFalse(d, hn::Or(isSmall, hn::Gt(magnitude, words(kInfiniteBf16 - 1))))) return false;
  const VWords product = hn::SaturatedAdd(magnitude, added);
  const VWords tieToEven = hn::And(hn::ShiftRight<kDropped>(product), words(1));
  const VWords rounded = hn::SaturatedAdd(product, hn::Add(tieToEven, words((1u << (kDropped - 1)) - 1u)));
  const VWords normal =
      hn::Sub(hn::ShiftRight<kDropped>(rounded), words((127u - Format::kBias) << Format::kMantissaBits));
  const VWords code = hn::IfThenZeroElse(isZero, hn::Min(normal, words(Format::kMax)));
  const VWords all = hn::Or(code, hn::And(hn::ShiftRight<16 - Format::kBits>(bits), words(Format::kSign)));
  const hn::Rebind<std::uint8_t, DWords> bytes;
  hn::StoreU(hn::TruncateTo(bytes, hn::BitCast(hn::RebindToUnsigned<DWords>(), all)), bytes, out);
  return true;
}

#endif

// ---- one code a byte, in blocks

template <class Format, class From>
HWY_INLINE void encodeBlock(std::uint8_t* out, const From* in, float scale, std::size_t n) {
  encode<Format>(out, in, scale, n);
}

#if HWY_TARGET != HWY_SCALAR

template <class Format>
HWY_INLINE void encodeBlock(std::uint8_t* out, const Bf16* in, float scale, std::size_t n) {
  if (!isPowerOfTwo(scale)) return encode<Format>(out, in, scale, n);
  const Shift shift = shiftOf<Format>(scale);
  const VWords added = hn::Set(DWords(), shift.added);
  const VWords least = hn::Set(DWords(), shift.least);
  const std::size_t lanes = hn::Lanes(DWords());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hwy::Prefetch(in + i + kAhead);
    if (!encodeShifted<Format>(in + i, added, least, out + i)) encode<Format>(out + i, in + i, scale, lanes);
  }
  if (i < n) encode<Format>(out + i, in + i, scale, n - i);
}

#endif

template <class Format, class From>
void encodeBlocks(std::uint8_t* out, const void* from, const float* scales, std::size_t width, std::size_t n) {
  const auto* const in = static_cast<const From*>(from);
  for (std::size_t i = 0; i < n; i += width) encodeBlock<Format>(out + i, in + i, *scales++, std::min(width, n - i));
}

template <class Format, class To>
void decodeBlocks(void* to, const std::uint8_t* in, const float* scales, std::size_t width, std::size_t n) {
  auto* const out = static_cast<To*>(to);
  for (std::size_t i = 0; i < n; i += width) decode<Format>(out + i, in + i, *scales++, std::min(width, n - i));
}

// ---- one code a byte, in columns

template <class Format, class From>
void encodeEach(std::uint8_t* out, const From* in, const float* scales, std::size_t n) {
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

/// Some columns of rows that are `stride` apart.
template <class Format, class From>
void encodePart(std::uint8_t* out, const From* in, const float* scales, std::size_t rows, std::size_t stride,
                std::size_t n) {
  for (std::size_t row = 0; row < rows; ++row) encodeEach<Format>(out + row * stride, in + row * stride, scales, n);
}

#if HWY_TARGET != HWY_SCALAR

/// Number of columns whose shifts stay in the first-level cache.
constexpr std::size_t kPart = 1024;

struct Shifts {
  HWY_ALIGN std::int16_t added[kPart];
  HWY_ALIGN std::int16_t least[kPart];
};

/// False where a scale is no power of two.
template <class Format>
bool findShifts(const float* scales, std::size_t n, Shifts& shifts) {
  bool areAll = true;
  for (std::size_t i = 0; i < n; ++i) {
    areAll &= isPowerOfTwo(scales[i]);
    const Shift shift = shiftOf<Format>(scales[i]);
    shifts.added[i] = shift.added;
    shifts.least[i] = shift.least;
  }
  return areAll;
}

template <class Format>
void encodeRow(std::uint8_t* out, const Bf16* in, const float* scales, const Shifts& shifts, std::size_t n) {
  const DWords d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hwy::Prefetch(in + i + kAhead);
    if (!encodeShifted<Format>(in + i, hn::Load(d, shifts.added + i), hn::Load(d, shifts.least + i), out + i))
      encodeEach<Format>(out + i, in + i, scales + i, lanes);
  }
  if (i < n) encodeEach<Format>(out + i, in + i, scales + i, n - i);
}

template <class Format>
void encodePart(std::uint8_t* out, const Bf16* in, const float* scales, std::size_t rows, std::size_t stride,
                std::size_t n) {
  for (std::size_t first = 0; first < n; first += kPart) {
    const std::size_t count = std::min(kPart, n - first);
    Shifts shifts;
    const bool areShifts = findShifts<Format>(scales + first, count, shifts);
    for (std::size_t at = first; at < first + rows * stride; at += stride)
      if (areShifts)
        encodeRow<Format>(out + at, in + at, scales + first, shifts, count);
      else
        encodeEach<Format>(out + at, in + at, scales + first, count);
  }
}

#endif

template <class Format, class From>
void encodeColumns(std::uint8_t* out, const void* from, const float* scales, std::size_t rows, std::size_t n) {
  encodePart<Format>(out, static_cast<const From*>(from), scales, rows, n, n);
}

template <class Format, class To>
void decodeEach(To* out, const std::uint8_t* in, const float* scales, std::size_t n) {
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    store(hn::Mul(valuesOf<Format>(hn::LoadU(DBytes(), in + i)), load(scales + i)), out + i);
  if (i == n) return;
  HWY_ALIGN std::uint8_t rest[HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy_n(in + i, n - i, rest);
  storeTail(hn::Mul(valuesOf<Format>(hn::LoadU(DBytes(), rest)), loadTail(scales + i, n - i)), out + i, n - i);
}

template <class Format, class To>
void decodeColumns(void* to, const std::uint8_t* in, const float* scales, std::size_t rows, std::size_t n) {
  for (std::size_t row = 0; row < rows; ++row)
    decodeEach<Format>(static_cast<To*>(to) + row * n, in + row * n, scales, n);
}

// ---- one code a byte, to bf16

#if HWY_TARGET != HWY_SCALAR

using DCodes = hn::ScalableTag<std::uint8_t>;
using HalfCodes = hn::Vec<hn::Half<DCodes>>;

/// The bytes of the bf16 numbers of the first encodings, which are the subnormal ones.
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

/// Exponent and mantissa move to their positions in bf16; subnormals, which have no exponent, come from a table of two
/// bytes each.
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

// ---- two encoded values per byte

/// One code a byte, seen in pairs.
struct Strip {
  HWY_ALIGN std::uint16_t pairs[kStrip / 2];
  std::uint8_t* codes() { return reinterpret_cast<std::uint8_t*>(pairs); }
};

using DPairs = hn::ScalableTag<std::uint16_t>;
using DPacked = hn::Rebind<std::uint8_t, DPairs>;

/// Writes one byte per two encoded values, (n + 1) / 2 in all. Values after the n-th become 0.
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
const Codecs& codecsFor(ElementFormat format) {
  return visitFormat(format, [](auto codec) -> const Codecs& {
    using Format = decltype(codec);
    static constexpr Codecs kCodecs = {quantize<Format, Element>,      dequantize<Format, Element>,
                                       encodeBlocks<Format, Element>,  decodeBlocks<Format, Element>,
                                       encodeColumns<Format, Element>, decodeColumns<Format, Element>};
    return kCodecs;
  });
}

const Codecs& findCodecs(ElementFormat format, DType dtype) {
  if (dtype == DType::F32) return codecsFor<float>(format);
  return dtype == DType::F16 ? codecsFor<F16>(format) : codecsFor<Bf16>(format);
}

}  // namespace HWY_NAMESPACE
}  // namespace fuseline::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fuseline::cpu {

HWY_EXPORT(findCodecs);

const Codecs& codecsOf(ElementFormat format, DType dtype) { return HWY_DYNAMIC_DISPATCH(findCodecs)(format, dtype); }

}  // namespace fuseline::cpu
#endif
