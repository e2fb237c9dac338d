// E8M0: every code by its definition, both roundings against frexp.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/e8m0.h"

#include "tests/support/encode_sweep.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using Rounding = E8m0::Rounding;

TEST(E8M0, DecodesEveryCodeToItsPowerOfTwo) {
  for (int code = 0; code < 255; ++code)
    EXPECT_EQ(static_cast<double>(E8m0::toFloat(static_cast<std::uint8_t>(code))), std::ldexp(1.0, code - 127));
  EXPECT_TRUE(std::isnan(E8m0::toFloat(255)));
}

TEST(E8M0, TheReciprocalIsExact) {
  for (int code = 0; code < 255; ++code)
    EXPECT_EQ(static_cast<double>(E8m0::reciprocal(static_cast<std::uint8_t>(code))), std::ldexp(1.0, 127 - code));
  EXPECT_TRUE(std::isnan(E8m0::reciprocal(255)));
}

TEST(E8M0, EveryCodeSurvivesTheRoundTrip) {
  for (int code = 0; code < 256; ++code) {
    const float value = E8m0::toFloat(static_cast<std::uint8_t>(code));
    EXPECT_EQ(E8m0::fromFloat(value, Rounding::TowardsZero), code);
    EXPECT_EQ(E8m0::fromFloat(value, Rounding::Up), code);
  }
}

TEST(E8M0, EncodesToThePowerOfTwoBelowOrAbove) { testing::sweepE8M0Encoder(433); }

TEST(E8M0, RoundsToZeroAndOverflowsAsCudaDoes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(E8m0::fromFloat(0.0f, Rounding::Up), 0);
  EXPECT_EQ(E8m0::fromFloat(0x1p-130f, Rounding::Up), 0);    // below 2^-127
  EXPECT_EQ(E8m0::fromFloat(0x1.8p-127f, Rounding::Up), 1);  // above it, and still subnormal
  EXPECT_EQ(E8m0::fromFloat(-0x1.8p0f, Rounding::Up), 128);  // the sign is ignored
  EXPECT_EQ(E8m0::fromFloat(0x1.8p127f, Rounding::Up), 0xfe);
  EXPECT_EQ(E8m0::fromFloat(0x1.8p127f, Rounding::Up, Overflow::Propagate), 0xff);
  EXPECT_EQ(E8m0::fromFloat(kInfinity, Rounding::Up), 0xfe);
  EXPECT_EQ(E8m0::fromFloat(kInfinity, Rounding::TowardsZero, Overflow::Propagate), 0xff);
}

}  // namespace
}  // namespace fuseline
