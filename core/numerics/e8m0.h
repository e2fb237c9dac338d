// E8M0: powers of two from 2^-127 to 2^127, the scales of MXFP8. Usable in device code: no library calls.
// Source: OCP Microscaling Formats v1.0; conversions as CUDA does them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/minifloat.h"

#include <bit>
#include <cstdint>

namespace fuseline {

/// A code e is 2^(e - 127); 255 is NaN. There is neither zero nor sign.
struct E8m0 {
  static constexpr std::uint8_t kMax = 0xfe;
  static constexpr std::uint8_t kNan = 0xff;

  enum class Rounding { TowardsZero, Up };

  static constexpr float toFloat(std::uint8_t code) {
    if (code == kNan) return std::bit_cast<float>(0x7fc00000u);
    return std::bit_cast<float>(code == 0 ? kTwoToMinus127 : static_cast<std::uint32_t>(code) << 23);
  }

  /// The power of two at or below |value|, or at or above it. Values that are too small, including zero, give 2^-127;
  /// values that are too large give 2^127 or, without saturation, NaN.
  static constexpr std::uint8_t fromFloat(float value, Rounding rounding, Overflow overflow = Overflow::Saturate) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return kNan;
    const std::uint32_t exponent = magnitude >> 23;
    const bool isRoundedUp = rounding == Rounding::Up && magnitude > kTwoToMinus127 && (magnitude & 0x7fffffu) != 0;
    const std::uint32_t code = exponent + (isRoundedUp ? 1u : 0u);
    if (code <= kMax) return static_cast<std::uint8_t>(code);
    return overflow == Overflow::Saturate ? kMax : kNan;
  }

  /// 2^(127 - code), exactly: the multiplier of elements before they are rounded.
  static constexpr float reciprocal(std::uint8_t code) {
    if (code == kNan) return std::bit_cast<float>(0x7fc00000u);
    return std::bit_cast<float>(code == kMax ? kTwoToMinus127 : (254u - code) << 23);
  }

 private:
  static constexpr std::uint32_t kTwoToMinus127 = 0x00400000u;  // a subnormal float32
};

}  // namespace fuseline
