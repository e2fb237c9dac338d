// bfloat16: the upper half of an IEEE binary32. Usable in device code: no library calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace fuseline {

constexpr float bf16ToFloat(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// Rounds to nearest, ties to even. NaN stays NaN (made quiet), infinities stay.
constexpr std::uint16_t floatToBf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool isNan = (bits & 0x7fffffffu) > 0x7f800000u;
  if (isNan) return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);
  const std::uint32_t tieToEven = (bits >> 16) & 1u;
  return static_cast<std::uint16_t>((bits + 0x7fffu + tieToEven) >> 16);
}

}  // namespace fuseline
