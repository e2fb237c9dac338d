// The comparisons of results on which other tests rely: what they must not let pass.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run_plan.h"

#include <gtest/gtest.h>

#include <limits>

namespace fuseline::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string differenceInNorm(const std::vector<double>& actual, const std::vector<double>& expected) {
  return firstDifferenceInNorm({{"y", actual}}, {{"y", expected}}, 0.1);
}

TEST(DifferenceInNorm, IsThatOfAllElementsTogether) {
  EXPECT_EQ(differenceInNorm({3.3, 4.0}, {3.0, 4.0}), "");  // 0.3 of 5
  EXPECT_NE(differenceInNorm({3.6, 4.0}, {3.0, 4.0}), "");
}

TEST(DifferenceInNorm, FindsWhatIsNotFinite) {
  EXPECT_EQ(differenceInNorm({kNan, -kInfinity, 4.0}, {kNan, -kInfinity, 4.0}), "");
  EXPECT_NE(differenceInNorm({1.0, 4.0}, {kNan, 4.0}), "");
  EXPECT_NE(differenceInNorm({kNan, 4.0}, {1.0, 4.0}), "");
  EXPECT_NE(differenceInNorm({1.0, 4.0}, {kInfinity, 4.0}), "");
  EXPECT_NE(differenceInNorm({kInfinity, 4.0}, {-kInfinity, 4.0}), "");
  EXPECT_NE(differenceInNorm({kNan, 8.0}, {kNan, 4.0}), "");
}

TEST(DifferenceInNorm, FindsWhatIsNotZeroOrMissing) {
  EXPECT_EQ(differenceInNorm({0.0, 0.0}, {0.0, 0.0}), "");
  EXPECT_NE(differenceInNorm({0.0, 1e-9}, {0.0, 0.0}), "");
  EXPECT_NE(differenceInNorm({3.0}, {3.0, 0.0}), "");
  EXPECT_NE(firstDifferenceInNorm({}, {{"y", {1.0}}}, 0.1), "");
}

}  // namespace
}  // namespace fuseline::testing
