// One rounding instead of two, from double to 16 bits or less. Usable in device code: no library calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace fuseline {

/// Rounds to odd: a value that is not representable gets an odd mantissa. Rounding the result to 16 bits or less equals
/// rounding the double directly. Source: Boldo & Melquiond 2008, "Emulation of FMA and correctly rounded sums".
constexpr float roundedToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto widened = static_cast<double>(nearest);
  const bool isNan = value != value;
  if (widened == value || isNan) return nearest;
  const bool isTooLarge = value < 0.0 ? widened < value : widened > value;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  return std::bit_cast<float>((isTooLarge ? bits - 1 : bits) | 1u);
}

}  // namespace fuseline
