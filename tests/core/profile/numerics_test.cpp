// Distances between tensors, against values worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/numerics.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(ErrorOf, GivesMaximumRmsAndAngle) {
  const ErrorNumerics error = errorOf("y", {3.0, 4.5}, {3.0, 4.0}, DType::F32);
  EXPECT_DOUBLE_EQ(error.maxAbsolute, 0.5);
  EXPECT_DOUBLE_EQ(error.rmsRelative, 0.5 / 5.0);
  EXPECT_NEAR(error.cosine, 27.0 / (std::sqrt(29.25) * 5.0), 1e-12);
}

TEST(ErrorOf, CountsUnitsInTheLastPlaceOfTheDtype) {
  // A bf16 unit at 1 is 2^-7: equal, half a unit, one, 1.5, 3, and 1000 of them.
  constexpr double kUnit = 0x1p-7;
  const std::vector<double> expected(6, 1.0);
  const std::vector<double> actual = {
      1.0, 1.0 + kUnit / 2, 1.0 + kUnit, 1.0 + 1.5 * kUnit, 1.0 - 3 * kUnit, 1.0 + 1000 * kUnit};
  const ErrorNumerics error = errorOf("y", actual, expected, DType::BF16);
  EXPECT_EQ(error.ulpHistogram[0], 2);
  EXPECT_EQ(error.ulpHistogram[1], 1);
  EXPECT_EQ(error.ulpHistogram[2], 1);
  EXPECT_EQ(error.ulpHistogram[3], 1);
  EXPECT_EQ(error.ulpHistogram[ErrorNumerics::kUlpBuckets - 1], 1);
}

TEST(ErrorOf, SeesNonFiniteElementsThatDiffer) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(errorOf("y", {nan, kInfinity, 1.0}, {nan, kInfinity, 1.0}, DType::F32).isFinite);
  EXPECT_FALSE(errorOf("y", {nan, 1.0}, {1.0, 1.0}, DType::F32).isFinite);
  EXPECT_FALSE(errorOf("y", {-kInfinity}, {kInfinity}, DType::F32).isFinite);
}

}  // namespace
}  // namespace fuseline
