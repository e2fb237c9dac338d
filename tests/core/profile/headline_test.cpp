// The headline has both medians, the paired ratio and its interval, and says where they disagree.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/headline.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

ComparisonRow row(double unfusedMs, double fusedMs, RatioStats speedup, int count = 10) {
  ComparisonRow row;
  row.unfused = {.median = unfusedMs * 1e6, .count = count};
  row.fused = {.median = fusedMs * 1e6, .count = count};
  row.speedup = speedup;
  return row;
}

TEST(Headline, SaysWhatBothPlansTookAndHowSureTheRatioIs) {
  EXPECT_EQ(headline(row(480, 400, {.median = 1.2, .low = 1.15, .high = 1.25})),
            "fused 400 ms, unfused 480 ms: speed-up 1.20x in paired rounds (95 % CI 1.15 to 1.25)");
  EXPECT_EQ(headline(row(754, 677, {.median = 1.107, .low = 1.106, .high = 1.109})),
            "fused 677 ms, unfused 754 ms: speed-up 1.107x in paired rounds (95 % CI 1.106 to 1.109)");
  EXPECT_EQ(headline(row(480, 475, {.median = 1.01, .low = 0.97, .high = 1.05})),
            "fused 475 ms, unfused 480 ms: speed-up 1.01x in paired rounds (95 % CI 0.97 to 1.05), not statistically "
            "significant");
}

TEST(Headline, MakesNoClaimOfAFewRounds) {
  const std::string text = headline(row(480, 400, {.median = 1.2, .low = 1.2, .high = 1.2}, 3));
  EXPECT_NE(text.find("3 rounds; at least 6 are needed"), std::string::npos) << text;
  EXPECT_EQ(headlineCaveat(row(480, 400, {.median = 1.2, .low = 1.2, .high = 1.2}, 3)), "");
}

TEST(Headline, OfAFewRoundsSaysWhereTheMediansContradictTheRatio) {
  const std::string caveat = headlineCaveat(row(768, 723, {.median = 0.90, .low = 0.90, .high = 0.90}, 5));
  EXPECT_NE(caveat.find("medians is 1.06x: 5 rounds are too few"), std::string::npos) << caveat;
}

TEST(Headline, IsEmptyForOnePlan) {
  ComparisonRow one = row(480, 0, {});
  one.fused.count = 0;
  EXPECT_EQ(headline(one), "");
  EXPECT_EQ(headlineCaveat(one), "");
}

TEST(Headline, SaysWhereTheMediansGiveAnotherRatio) {
  EXPECT_EQ(headlineCaveat(row(480, 400, {.median = 1.2, .low = 1.15, .high = 1.25})), "");
  const std::string caveat = headlineCaveat(row(480, 515, {.median = 0.76, .low = 0.7, .high = 0.8}));
  EXPECT_NE(caveat.find("medians, 0.932x"), std::string::npos) << caveat;
}

}  // namespace
}  // namespace fuseline
