// Encodes float32 patterns in rising order and compares every code with the nearest value, found by search.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/e8m0.h"
#include "core/numerics/minifloat.h"
#include "tests/support/minifloat_definition.h"

#include <bit>
#include <cstdint>

#include <gtest/gtest.h>

namespace fuseline::testing {

constexpr std::uint32_t kInfinityBits = 0x7f800000u;

/// The nearest encoding of rising magnitudes, of two the even one. maxCode + 1: overflow.
class NearestCode {
 public:
  explicit NearestCode(const MinifloatDefinition& format) : m_values(format.magnitudes()) {
    m_values.push_back(format.afterMax());
  }

  /// magnitude: not below that of the last call.
  int of(double magnitude) {
    while (m_code + 1 < static_cast<int>(m_values.size()) && isNearerToNext(magnitude)) ++m_code;
    return m_code;
  }

 private:
  bool isNearerToNext(double magnitude) const {
    const auto code = static_cast<std::size_t>(m_code);
    const double tie = (m_values[code] + m_values[code + 1]) / 2;  // exact in double
    return magnitude > tie || (magnitude == tie && m_code % 2 == 1);
  }

  std::vector<double> m_values;
  int m_code = 0;
};

/// Every stride-th float32 of both signs, NaN included; stride 1 takes all 2^32.
template <class Format>
void sweepEncoder(const MinifloatDefinition& format, std::uint32_t stride) {
  NearestCode search(format);
  for (std::uint64_t wide = 0; wide < 0x80000000u; wide += stride) {
    const auto bits = static_cast<std::uint32_t>(wide);
    const bool isNan = bits > kInfinityBits;
    const float value = std::bit_cast<float>(bits);
    const int nearest = isNan ? format.nanCode : search.of(static_cast<double>(value));
    const int saturated = isNan ? nearest : std::min(nearest, format.maxCode);
    const int propagated = !isNan && nearest > format.maxCode ? format.overflowCode : nearest;
    const int sign = isNan ? 0 : format.signBit();
    ASSERT_EQ(Format::fromFloat(value), saturated) << bits;
    ASSERT_EQ(Format::fromFloat(-value), saturated | sign) << bits;
    ASSERT_EQ(Format::fromFloat(value, Overflow::Propagate), propagated) << bits;
    ASSERT_EQ(Format::fromFloat(-value, Overflow::Propagate), propagated | sign) << bits;
  }
}

/// By frexp: |value| = fraction * 2^exponent with the fraction in [0.5, 1).
inline int powerOfTwoCode(double magnitude, bool isRoundedUp) {
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);
  const int power = magnitude == 0 ? -127 : exponent - 1 + (isRoundedUp && fraction != 0.5 ? 1 : 0);
  return std::max(power, -127) + 127;
}

/// The same for E8M0, which ignores the sign.
inline void sweepE8M0Encoder(std::uint32_t stride) {
  for (std::uint64_t wide = 0; wide < 0x100000000u; wide += stride) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(wide));
    const bool isNan = std::isnan(value);
    const auto codeOf = [&](bool isRoundedUp) {
      if (isNan) return 0xff;
      return std::isinf(value) ? 0xff : powerOfTwoCode(std::abs(static_cast<double>(value)), isRoundedUp);
    };
    const auto limited = [&](int code) { return isNan ? code : std::min(code, 0xfe); };
    const int down = codeOf(false);
    const int up = codeOf(true);
    ASSERT_EQ(E8m0::fromFloat(value, E8m0::Rounding::TowardsZero), limited(down)) << wide;
    ASSERT_EQ(E8m0::fromFloat(value, E8m0::Rounding::Up), limited(up)) << wide;
    ASSERT_EQ(E8m0::fromFloat(value, E8m0::Rounding::TowardsZero, Overflow::Propagate), down) << wide;
    ASSERT_EQ(E8m0::fromFloat(value, E8m0::Rounding::Up, Overflow::Propagate), up) << wide;
  }
}

}  // namespace fuseline::testing
