// Floating-point formats of at most 8 bits: E4M3, E5M2 and E2M1. Usable in device code: no library calls.
// Source: OCP 8-bit Floating Point Specification v1.0 and OCP Microscaling Formats v1.0; conversions as CUDA does them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace fuseline {

/// The encodings with the largest exponent that are not numbers.
enum class Specials { None, NanOnly, InfinityAndNan };

/// Result for a value beyond the largest finite one, including infinity: the largest one, or infinity (NaN if the
/// format has none, and the largest one if it has neither).
enum class Overflow { Saturate, Propagate };

/// An encoded value consists of sign, exponent and mantissa, from the top. It occupies the lowest kBits of a byte.
template <int kExponents, int kMantissas, Specials kSpecialCodes>
struct Minifloat {
  static constexpr int kExponentBits = kExponents;
  static constexpr int kMantissaBits = kMantissas;
  static constexpr Specials kSpecials = kSpecialCodes;
  static constexpr int kBits = 1 + kExponentBits + kMantissaBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;

  static constexpr std::uint32_t kSign = 1u << (kBits - 1);
  static constexpr std::uint32_t kInfinity = ((1u << kExponentBits) - 1u) << kMantissaBits;
  static constexpr std::uint32_t kMax = kSpecials == Specials::InfinityAndNan ? kInfinity - 1u
                                        : kSpecials == Specials::NanOnly      ? kSign - 2u
                                                                              : kSign - 1u;
  static constexpr std::uint32_t kOverflow = kSpecials == Specials::None ? kMax : kMax + 1u;
  /// Encoding of NaN, without sign. A format without NaN has its largest value here.
  static constexpr std::uint32_t kNan = kSign - 1u;

  /// A float32 mantissa has this many more bits.
  static constexpr int kDroppedBits = 23 - kMantissaBits;
  /// The code of a normal float32 is its bits without the dropped ones, less this.
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << kMantissaBits;
  static constexpr std::uint32_t kMinNormalBits = static_cast<std::uint32_t>(128 - kBias) << 23;
  /// The smallest positive value.
  static constexpr float kMinSubnormal =
      std::bit_cast<float>(static_cast<std::uint32_t>(128 - kBias - kMantissaBits) << 23);
  /// A float32 whose last bit is worth kMinSubnormal: adding it to a smaller value rounds that value to the subnormal
  /// grid.
  static constexpr float kSubnormalAligner =
      std::bit_cast<float>(static_cast<std::uint32_t>(128 - kBias + kDroppedBits) << 23);

  static constexpr bool isNan(std::uint8_t code) {
    const std::uint32_t magnitude = code & (kSign - 1u);
    return kSpecials != Specials::None && magnitude > (kSpecials == Specials::NanOnly ? kMax : kInfinity);
  }

  static constexpr float toFloat(std::uint8_t code) {
    const std::uint32_t sign = (code & kSign) << (32 - kBits);
    const std::uint32_t magnitude = code & (kSign - 1u);
    return std::bit_cast<float>(sign | magnitudeBits(magnitude));
  }

  /// Rounds to nearest, ties to even, once. NaN becomes kNan.
  static constexpr std::uint8_t fromFloat(float value, Overflow overflow = Overflow::Saturate) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint8_t>(kNan);
    return withSign(bits, limited(nearest(magnitude), overflow));
  }

  /// Rounds up with the probability of the dropped part, to 8 bits: floor(|x| + random / 256 * step). Saturates.
  static constexpr std::uint8_t fromFloatStochastic(float value, std::uint8_t random) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint8_t>(kNan);
    const std::uint32_t code = (withEightFractionBits(magnitude) + random) >> 8;
    return withSign(bits, limited(code, Overflow::Saturate));
  }

 private:
  static constexpr std::uint32_t magnitudeBits(std::uint32_t magnitude) {
    const auto code = static_cast<std::uint8_t>(magnitude);
    if (isNan(code)) return 0x7fc00000u;
    if (kSpecials == Specials::InfinityAndNan && magnitude == kInfinity) return 0x7f800000u;
    if (magnitude >> kMantissaBits != 0) return (magnitude + kRebias) << kDroppedBits;
    return std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * kMinSubnormal);
  }

  /// The encoding of |x|; above kMax if it is too large.
  static constexpr std::uint32_t nearest(std::uint32_t magnitude) {
    if (magnitude < kMinNormalBits) {
      const float aligned = std::bit_cast<float>(magnitude) + kSubnormalAligner;
      return std::bit_cast<std::uint32_t>(aligned) - std::bit_cast<std::uint32_t>(kSubnormalAligner);
    }
    const std::uint32_t tieToEven = (magnitude >> kDroppedBits) & 1u;
    return ((magnitude + (1u << (kDroppedBits - 1)) - 1u + tieToEven) >> kDroppedBits) - kRebias;
  }

  /// The code of |x| times 256, rounded towards zero.
  static constexpr std::uint32_t withEightFractionBits(std::uint32_t magnitude) {
    if (magnitude < kMinNormalBits)
      return static_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * (256.0f / kMinSubnormal));
    return (magnitude >> (kDroppedBits - 8)) - (kRebias << 8);
  }

  static constexpr std::uint32_t limited(std::uint32_t code, Overflow overflow) {
    if (code <= kMax) return code;
    return overflow == Overflow::Saturate ? kMax : kOverflow;
  }

  static constexpr std::uint8_t withSign(std::uint32_t bits, std::uint32_t code) {
    return static_cast<std::uint8_t>(((bits >> 31) << (kBits - 1)) | code);
  }
};

/// 448 to 2^-9, no infinity ("fn").
using E4m3 = Minifloat<4, 3, Specials::NanOnly>;
/// 57344 to 2^-16; the upper byte of a binary16.
using E5m2 = Minifloat<5, 2, Specials::InfinityAndNan>;
/// 0, 0.5, 1, 1.5, 2, 3, 4 and 6, with either sign.
using E2m1 = Minifloat<2, 1, Specials::None>;

}  // namespace fuseline
