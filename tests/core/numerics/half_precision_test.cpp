// bf16 and f16 codecs, over all 65536 encodings and against the definition of round to nearest, ties to even.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/bf16.h"
#include "core/numerics/f16.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

/// A format with 1 sign bit, some exponent bits and some mantissa bits; decodes by the definition of IEEE 754.
struct Format {
  int exponentBits;
  int mantissaBits;
  float (*decode)(std::uint16_t);
  std::uint16_t (*encode)(float);

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  int exponent(std::uint16_t code) const { return (code >> mantissaBits) & ((1 << exponentBits) - 1); }
  int mantissa(std::uint16_t code) const { return code & ((1 << mantissaBits) - 1); }
  bool isSpecial(std::uint16_t code) const { return exponent(code) == (1 << exponentBits) - 1; }
  bool isNan(std::uint16_t code) const { return isSpecial(code) && mantissa(code) != 0; }
  std::uint16_t infinity() const { return static_cast<std::uint16_t>(((1 << exponentBits) - 1) << mantissaBits); }

  double valueOf(std::uint16_t code) const {
    const bool isSubnormal = exponent(code) == 0;
    const double significand = mantissa(code) + (isSubnormal ? 0 : 1 << mantissaBits);
    const double magnitude = std::ldexp(significand, std::max(exponent(code), 1) - bias() - mantissaBits);
    return (code & 0x8000) != 0 ? -magnitude : magnitude;
  }
};

const Format kBf16 = {8, 7, bf16ToFloat, floatToBf16};
const Format kF16 = {5, 10, f16ToFloat, floatToF16};

class HalfPrecision : public ::testing::TestWithParam<Format> {};

TEST_P(HalfPrecision, DecodesEveryFiniteCodeToItsDefinition) {
  const Format& format = GetParam();
  for (int i = 0; i < 65536; ++i) {
    const auto code = static_cast<std::uint16_t>(i);
    if (!format.isSpecial(code)) {
      ASSERT_EQ(static_cast<double>(format.decode(code)), format.valueOf(code)) << code;
    }
  }
}

TEST_P(HalfPrecision, DecodesInfinitiesAndNans) {
  const Format& format = GetParam();
  EXPECT_EQ(format.decode(format.infinity()), std::numeric_limits<float>::infinity());
  EXPECT_EQ(format.decode(format.infinity() | 0x8000), -std::numeric_limits<float>::infinity());
  for (int i = 0; i < 65536; ++i) {
    const auto code = static_cast<std::uint16_t>(i);
    ASSERT_EQ(std::isnan(format.decode(code)), format.isNan(code)) << code;
  }
}

TEST_P(HalfPrecision, EveryCodeSurvivesTheRoundTrip) {
  const Format& format = GetParam();
  for (int i = 0; i < 65536; ++i) {
    const auto code = static_cast<std::uint16_t>(i);
    const std::uint16_t encoded = format.encode(format.decode(code));
    if (format.isNan(code))
      ASSERT_TRUE(format.isNan(encoded)) << code;
    else
      ASSERT_EQ(encoded, code);
  }
}

/// The float halfway between two neighbors, which is exact: a float has more bits than either format.
float halfway(const Format& format, std::uint16_t code) {
  return static_cast<float>((format.valueOf(code) + format.valueOf(static_cast<std::uint16_t>(code + 1))) / 2);
}

TEST_P(HalfPrecision, RoundsTiesToEvenAndEverythingElseToNearest) {
  const Format& format = GetParam();
  for (std::uint16_t code = 0; code + 1 < format.infinity(); ++code) {
    const auto next = static_cast<std::uint16_t>(code + 1);
    const float tie = halfway(format, code);
    ASSERT_EQ(format.encode(tie), code % 2 == 0 ? code : next) << code;
    ASSERT_EQ(format.encode(std::nextafter(tie, 0.0f)), code) << code;
    ASSERT_EQ(format.encode(std::nextafter(tie, std::numeric_limits<float>::max())), next) << code;
    ASSERT_EQ(format.encode(-tie), (code % 2 == 0 ? code : next) | 0x8000) << code;
  }
}

TEST_P(HalfPrecision, OverflowsToInfinityFromHalfAStepAboveTheLargestValue) {
  const Format& format = GetParam();
  const auto largest = static_cast<std::uint16_t>(format.infinity() - 1);
  const double step = format.valueOf(largest) - format.valueOf(static_cast<std::uint16_t>(largest - 1));
  const auto threshold = static_cast<float>(format.valueOf(largest) + step / 2);
  EXPECT_EQ(format.encode(threshold), format.infinity());
  EXPECT_EQ(format.encode(std::nextafter(threshold, 0.0f)), largest);
  EXPECT_EQ(format.encode(-threshold), format.infinity() | 0x8000);
}

TEST_P(HalfPrecision, KeepsNanWhateverItsPayload) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu})
    EXPECT_TRUE(GetParam().isNan(GetParam().encode(std::bit_cast<float>(bits)))) << bits;
}

TEST_P(HalfPrecision, RoundsTinyValuesToZeroAndKeepsTheSign) {
  EXPECT_EQ(GetParam().encode(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(GetParam().encode(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(GetParam().encode(-0.0f), 0x8000);
}

INSTANTIATE_TEST_SUITE_P(Formats, HalfPrecision, ::testing::Values(kBf16, kF16),
                         [](const auto& instance) { return instance.index == 0 ? "Bf16" : "F16"; });

}  // namespace
}  // namespace fuseline
