// Vectorized codecs and functions, once for every instruction set that Highway compiles this header for.
// Codecs equal core/numerics bit for bit, subnormals and NaN included; that is why the AVX-512 instruction
// vcvtneps2bf16, which flushes subnormals, is not used.
// SPDX-License-Identifier: Apache-2.0

// No #pragma once: Highway includes this file once per instruction set and flips the toggle in between.
#if defined(FUSELINE_VECTOR_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSELINE_VECTOR_MATH_INL_H
#undef FUSELINE_VECTOR_MATH_INL_H
#else
#define FUSELINE_VECTOR_MATH_INL_H
#endif

#include "core/numerics/f16.h"
#include "kernels/cpu/elementwise/elements.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fuseline::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using DInt = hn::Rebind<std::int32_t, D>;
using DBits = hn::Rebind<std::uint32_t, D>;
using DHalfBits = hn::Rebind<std::uint16_t, D>;
using DHalf = hn::Rebind<hwy::float16_t, D>;

#if HWY_TARGET == HWY_SCALAR
// Highway's own conversions of a single element do not support infinities and subnormals.
HWY_INLINE V promoteHalf(hn::Vec<DHalfBits> bits) { return hn::Set(D(), f16ToFloat(hn::GetLane(bits))); }
HWY_INLINE hn::Vec<DHalfBits> demoteHalf(V value) { return hn::Set(DHalfBits(), floatToF16(hn::GetLane(value))); }
#else
HWY_INLINE V promoteHalf(hn::Vec<DHalfBits> bits) { return hn::PromoteTo(D(), hn::BitCast(DHalf(), bits)); }
HWY_INLINE hn::Vec<DHalfBits> demoteHalf(V value) { return hn::BitCast(DHalfBits(), hn::DemoteTo(DHalf(), value)); }
#endif

HWY_INLINE V splat(double value) { return hn::Set(D(), static_cast<float>(value)); }

// ---- codecs: float32 vectors from and to memory

HWY_INLINE V load(const float* from) { return hn::LoadU(D(), from); }

HWY_INLINE V load(const Bf16* from) {
  const auto bits = hn::LoadU(DHalfBits(), &from->bits);
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(DBits(), bits)));
}

HWY_INLINE V load(const F16* from) { return promoteHalf(hn::LoadU(DHalfBits(), &from->bits)); }

HWY_INLINE void store(V value, float* to) { hn::StoreU(value, D(), to); }

/// The bf16 of a float32 in the upper half of its bits: rounded to nearest even; NaN keeps its upper payload and
/// becomes quiet.
HWY_INLINE hn::Vec<DBits> roundToBf16(V value) {
  const DBits d;
  const auto bits = hn::BitCast(d, value);
  const auto tieToEven = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
  const auto rounded = hn::Add(bits, hn::Add(tieToEven, hn::Set(d, 0x7fffu)));
  const auto quiet = hn::Or(bits, hn::Set(d, 0x00400000u));
  return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(value)), quiet, rounded);
}

HWY_INLINE void store(V value, Bf16* to) {
  const auto upper = hn::ShiftRight<16>(roundToBf16(value));
  hn::StoreU(hn::TruncateTo(DHalfBits(), upper), DHalfBits(), &to->bits);
}

/// Rounds to nearest even; every NaN becomes the quiet NaN of its sign, as core/numerics/f16.h does it.
HWY_INLINE void store(V value, F16* to) {
  const V quietNan = hn::BitCast(D(), hn::Set(DBits(), 0x7fc00000u));
  const V plain = hn::IfThenElse(hn::IsNaN(value), hn::CopySign(quietNan, value), value);
  hn::StoreU(demoteHalf(plain), DHalfBits(), &to->bits);
}

/// Two vectors that follow each other.
template <class T>
HWY_INLINE void storePair(V first, V second, T* to) {
  store(first, to);
  store(second, to + hn::Lanes(D()));
}

#if HWY_TARGET != HWY_SCALAR
/// The upper halves of both vectors are picked by one permutation and stored at once.
HWY_INLINE void storePair(V first, V second, Bf16* to) {
  const hn::Repartition<std::uint16_t, D> d;
  const auto low = hn::BitCast(d, roundToBf16(first));
  const auto high = hn::BitCast(d, roundToBf16(second));
  hn::StoreU(hn::ConcatOdd(d, high, low), d, &to->bits);
}
#endif

/// Loads the first `count` elements; the rest are zero. Reads nothing beyond them.
template <class T>
HWY_INLINE V loadTail(const T* from, std::size_t count) {
  HWY_ALIGN T padded[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(padded, from, count * sizeof(T));
  return load(padded);
}

/// Writes the first `count` elements and nothing beyond.
template <class T>
HWY_INLINE void storeTail(V value, T* to, std::size_t count) {
  HWY_ALIGN T padded[HWY_MAX_BYTES / sizeof(float)];
  store(value, padded);
  std::memcpy(to, padded, count * sizeof(T));
}

// ---- functions

/// About 1e-7 relative, or about 1e-4 for values that are only stored as bf16 (half an ulp there: 2e-3).
enum class Accuracy { Full, Bf16 };

/// Propagates NaN: on x86, max and min return their second operand when either is NaN.
HWY_INLINE V clamp(V x, double low, double high) { return hn::Min(splat(high), hn::Max(splat(low), x)); }
HWY_INLINE V atLeast(V x, double low) { return hn::Max(splat(low), x); }

/// A number split into a whole number n and a rest. `bits` has n in its lowest bits.
struct Reduced {
  V whole;
  hn::Vec<DInt> bits;
};

/// Rounds x * factor to the nearest whole number, |x * factor| < 2^21: adding 1.5 * 2^23 moves the fraction out.
HWY_INLINE Reduced roundProduct(V x, double factor) {
  const V magic = splat(12582912.0);
  const V shifted = hn::MulAdd(x, splat(factor), magic);
  return {hn::Sub(shifted, magic), hn::BitCast(DInt(), shifted)};
}

/// p * 2^n by adding n to the exponent; p and the result must be normal.
HWY_INLINE V scaleByPowerOfTwo(V p, hn::Vec<DInt> n) {
  return hn::BitCast(D(), hn::Add(hn::BitCast(DInt(), p), hn::ShiftLeft<23>(n)));
}

constexpr double kLog2e = 1.4426950408889634;
// ln(2) in two parts (Cody and Waite), so that the reduction is exact.
constexpr double kLn2High = 0.693359375;
constexpr double kLn2Low = -2.12194440e-4;

/// exp(r) for |r| <= ln(2)/2: minimax polynomial of degree 6, relative error 2e-9 before rounding.
HWY_INLINE V expReduced(V r) {
  V p = splat(0.0013836846129884322);
  p = hn::MulAdd(p, r, splat(0.00837481579816941));
  p = hn::MulAdd(p, r, splat(0.0416682255670137));
  p = hn::MulAdd(p, r, splat(0.16666420169947724));
  p = hn::MulAdd(p, r, splat(0.49999992079827493));
  p = hn::MulAdd(p, r, splat(1.0));
  return hn::MulAdd(p, r, splat(1.0));
}

HWY_INLINE V reduceByLn2(V x, V whole) {
  return hn::NegMulAdd(whole, splat(kLn2Low), hn::NegMulAdd(whole, splat(kLn2High), x));
}

/// exp(x) for x in [-87, 88]; the caller clamps. NaN gives an arbitrary result: adding to its exponent may make it a
/// number.
template <Accuracy kAccuracy>
HWY_INLINE V expNormal(V x) {
  const Reduced n = roundProduct(x, kLog2e);
  if constexpr (kAccuracy == Accuracy::Full) return scaleByPowerOfTwo(expReduced(reduceByLn2(x, n.whole)), n.bits);
  const V f = hn::MulSub(x, splat(kLog2e), n.whole);
  // 2^f for |f| <= 1/2: minimax polynomial of degree 3, relative error 7.5e-5.
  V p = hn::MulAdd(splat(0.05517166909261008), f, splat(0.24261112222375328));
  p = hn::MulAdd(p, f, splat(0.6932609854542462));
  p = hn::MulAdd(p, f, splat(0.9999280735351597));
  return scaleByPowerOfTwo(p, n.bits);
}

/// 2^n for whole n in [-126, 127].
HWY_INLINE V powerOfTwo(hn::Vec<DInt> n) {
  return hn::BitCast(D(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(DInt(), 127))));
}

/// exp over the whole range: infinities, subnormal results and zero. The power of two is applied in two halves.
HWY_INLINE V expWide(V x) {
  const V clamped = clamp(x, -104.0, 89.0);
  const V whole = roundProduct(clamped, kLog2e).whole;
  const auto n = hn::ConvertTo(DInt(), whole);
  const auto half = hn::ShiftRight<1>(n);
  const V p = expReduced(reduceByLn2(clamped, whole));
  return hn::Mul(hn::Mul(p, powerOfTwo(half)), powerOfTwo(hn::Sub(n, half)));
}

/// AVX2 estimates reciprocals to 12 bits, AVX-512 to 14.
constexpr bool kHasCoarseEstimate = HWY_TARGET >= HWY_AVX2;

HWY_INLINE V newtonStep(V x, V estimate) {
  return hn::MulAdd(estimate, hn::NegMulAdd(x, estimate, splat(1.0)), estimate);
}

/// 1 / x for x in [1, 1e35]: the CPU's estimate, with a Newton step for full accuracy, and another one if the estimate
/// is coarse: x (1 - sigmoid(x)) multiplies the error by x.
template <Accuracy kAccuracy>
HWY_INLINE V reciprocal(V x) {
  V y = hn::ApproximateReciprocal(x);
  if constexpr (kAccuracy == Accuracy::Full) y = newtonStep(x, y);
  if constexpr (kHasCoarseEstimate) y = newtonStep(x, y);
  return y;
}

/// Where sigmoid has reached its limit: sigmoid(-80) = 2e-35.
constexpr double kSigmoidLimit = 80.0;

/// 1 / (1 + exp(minusX)) for minusX in [-80, 80]
template <Accuracy kAccuracy>
HWY_INLINE V sigmoidOfNegated(V minusX) {
  return reciprocal<kAccuracy>(hn::Add(splat(1.0), expNormal<kAccuracy>(minusX)));
}

HWY_INLINE V keepNan(V x, V y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

/// 1 / (1 + exp(-x)); 0 below its limit, so that multiplying by any large factor leaves it 0.
template <Accuracy kAccuracy>
HWY_INLINE V sigmoid(V x) {
  const V s = sigmoidOfNegated<kAccuracy>(hn::Neg(clamp(x, -kSigmoidLimit, kSigmoidLimit)));
  return keepNan(x, hn::IfThenElseZero(hn::Ge(x, splat(-kSigmoidLimit)), s));
}

/// tanh by an odd polynomial near zero and by exp elsewhere (Cephes tanhf).
HWY_INLINE V tanhFull(V x) {
  const V square = hn::Mul(x, x);
  V p = splat(-5.70498872745e-3);
  p = hn::MulAdd(p, square, splat(2.06390887954e-2));
  p = hn::MulAdd(p, square, splat(-5.37397155531e-2));
  p = hn::MulAdd(p, square, splat(1.33314422036e-1));
  p = hn::MulAdd(p, square, splat(-3.33332819422e-1));
  const V nearZero = hn::MulAdd(hn::Mul(p, square), x, x);
  const V e = expNormal<Accuracy::Full>(hn::Min(splat(kSigmoidLimit), hn::Mul(splat(2.0), hn::Abs(x))));
  const V far = hn::NegMulAdd(splat(2.0), reciprocal<Accuracy::Full>(hn::Add(e, splat(1.0))), splat(1.0));
  return keepNan(x, hn::IfThenElse(hn::Lt(hn::Abs(x), splat(0.625)), nearZero, hn::CopySign(far, x)));
}

/// erf(x) / x for |x| < 1, of x^2: minimax polynomial, relative error 1.2e-9 before rounding.
HWY_INLINE V erfSlopeNearZero(V square) {
  V p = splat(7.88911955e-05);
  p = hn::MulAdd(p, square, splat(-8.02084129e-04));
  p = hn::MulAdd(p, square, splat(5.18953534e-03));
  p = hn::MulAdd(p, square, splat(-2.68544446e-02));
  p = hn::MulAdd(p, square, splat(1.12836002e-01));
  p = hn::MulAdd(p, square, splat(-3.76126271e-01));
  return hn::MulAdd(p, square, splat(1.12837917));
}

/// -log(1 - erf(x)) for x in [1, 4]: minimax polynomial, by which erf has an error below 2e-11 before rounding.
HWY_INLINE V erfcExponent(V x) {
  V p = splat(-2.12086225e-07);
  p = hn::MulAdd(p, x, splat(2.47542435e-05));
  p = hn::MulAdd(p, x, splat(-4.60357879e-04));
  p = hn::MulAdd(p, x, splat(4.27063639e-03));
  p = hn::MulAdd(p, x, splat(-2.53489255e-02));
  p = hn::MulAdd(p, x, splat(1.08606599e-01));
  p = hn::MulAdd(p, x, splat(6.33065735e-01));
  p = hn::MulAdd(p, x, splat(1.12964935));
  return hn::MulAdd(p, x, splat(-2.02065474e-04));
}

/// erf by an odd polynomial near zero and by exp elsewhere; from 4 on it is 1 in float32.
HWY_INLINE V erfFull(V x) {
  const V magnitude = hn::Min(splat(4.0), hn::Abs(x));
  const V nearZero = hn::Mul(x, erfSlopeNearZero(hn::Mul(magnitude, magnitude)));
  const V far = hn::Sub(splat(1.0), expNormal<Accuracy::Full>(hn::Neg(erfcExponent(magnitude))));
  return keepNan(x, hn::IfThenElse(hn::Lt(magnitude, splat(1.0)), nearZero, hn::CopySign(far, x)));
}

/// log with the IEEE special cases: log(0) = -inf, negative gives NaN, inf and NaN stay.
HWY_INLINE V logFull(V x) {
  const V infinity = hn::BitCast(D(), hn::Set(DBits(), 0x7f800000u));
  const V nan = hn::BitCast(D(), hn::Set(DBits(), 0x7fc00000u));
  V y = hn::Log(D(), x);
  y = hn::IfThenElse(hn::Lt(x, splat(0.0)), nan, y);
  y = hn::IfThenElse(hn::Eq(x, splat(0.0)), hn::Neg(infinity), y);
  return hn::IfThenElse(hn::Or(hn::Eq(x, infinity), hn::IsNaN(x)), x, y);
}

// Below, arguments are clamped where the function has reached its limit, so that huge values of x cannot meet the
// clamped exp: silu(-80) and gelu(-9.5) are smaller than 1e-32. Smaller results are 0, also at -inf.

/// y, or 0 where x is less than `low`; NaN stays.
HWY_INLINE V zeroBelow(V x, double low, V y) { return hn::IfThenZeroElse(hn::Lt(x, splat(low)), y); }

template <Accuracy kAccuracy>
HWY_INLINE V silu(V anyX) {
  const V x = atLeast(anyX, -kSigmoidLimit);
  const V y = hn::Mul(x, sigmoidOfNegated<kAccuracy>(hn::Neg(hn::Min(splat(kSigmoidLimit), x))));
  return zeroBelow(anyX, -kSigmoidLimit, y);
}

/// s + x s (1 - s)
template <Accuracy kAccuracy>
HWY_INLINE V siluGrad(V anyX) {
  const V x = clamp(anyX, -kSigmoidLimit, kSigmoidLimit);
  const V s = sigmoidOfNegated<kAccuracy>(hn::Neg(x));
  return zeroBelow(anyX, -kSigmoidLimit, hn::MulAdd(hn::Mul(x, s), hn::Sub(splat(1.0), s), s));
}

constexpr double kGeluLimit = 9.5;  // 2u(9.5) = 76

/// -2 u(x) with u = sqrt(2/pi) (x + 0.044715 x^3); gelu(x) = x sigmoid(2u), because (1 + tanh u) / 2 = sigmoid(2u).
HWY_INLINE V geluArgument(V x, V square) {
  return hn::Mul(x, hn::MulAdd(square, splat(-2 * 0.035677408136300125), splat(-2 * 0.7978845608028654)));
}

template <Accuracy kAccuracy>
HWY_INLINE V gelu(V anyX) {
  const V x = atLeast(anyX, -kGeluLimit);
  const V inner = hn::Min(splat(kGeluLimit), x);
  const V y = hn::Mul(x, sigmoidOfNegated<kAccuracy>(geluArgument(inner, hn::Mul(inner, inner))));
  return zeroBelow(anyX, -kGeluLimit, y);
}

/// s + x s (1 - s) 2u', with 2u' = 2 sqrt(2/pi) (1 + 3 * 0.044715 x^2).
template <Accuracy kAccuracy>
HWY_INLINE V geluGrad(V anyX) {
  const V x = clamp(anyX, -kGeluLimit, kGeluLimit);
  const V square = hn::Mul(x, x);
  const V s = sigmoidOfNegated<kAccuracy>(geluArgument(x, square));
  const V slope = hn::MulAdd(square, splat(2 * 0.10703222440890037), splat(2 * 0.7978845608028654));
  const V y = hn::MulAdd(hn::Mul(hn::Mul(x, s), hn::Sub(splat(1.0), s)), slope, s);
  return zeroBelow(anyX, -kGeluLimit, y);
}

/// Where (1 + erf(x / sqrt(2))) / 2 and the slope of exactGelu have reached their limits in float32.
constexpr double kExactGeluLimit = 15.0;

/// (1 + erf(x / sqrt(2))) / 2
HWY_INLINE V normalDistribution(V x) {
  return hn::MulAdd(erfFull(hn::Mul(x, splat(0.7071067811865476))), splat(0.5), splat(0.5));
}

HWY_INLINE V exactGelu(V anyX) {
  const V x = atLeast(anyX, -kExactGeluLimit);
  return zeroBelow(anyX, -kExactGeluLimit, hn::Mul(x, normalDistribution(x)));
}

/// The distribution function, and x times its density exp(-x^2 / 2) / sqrt(2 pi).
HWY_INLINE V exactGeluGrad(V anyX) {
  const V x = clamp(anyX, -kExactGeluLimit, kExactGeluLimit);
  const V density = expWide(hn::Mul(hn::Mul(x, x), splat(-0.5)));
  return hn::MulAdd(hn::Mul(x, splat(0.3989422804014327)), density, normalDistribution(x));
}

}  // namespace HWY_NAMESPACE
}  // namespace fuseline::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
