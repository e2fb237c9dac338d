// Order statistics and the bootstrap interval.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/stats.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

TEST(Summarize, GivesQuartilesAsNumpyDoes) {
  // numpy.percentile([7, 1, 3, 2, 10], [0, 25, 50, 75]) = [1, 2, 3, 7]
  const std::vector<double> samples = {7, 1, 3, 2, 10};
  const SampleStats stats = summarize(samples);
  EXPECT_DOUBLE_EQ(stats.minimum, 1);
  EXPECT_DOUBLE_EQ(stats.lowerQuartile, 2);
  EXPECT_DOUBLE_EQ(stats.median, 3);
  EXPECT_DOUBLE_EQ(stats.upperQuartile, 7);
  EXPECT_EQ(stats.count, 5);
}

TEST(Summarize, InterpolatesBetweenSamples) {
  // numpy.percentile([1, 2, 3, 4], [25, 50, 75]) = [1.75, 2.5, 3.25]
  const SampleStats stats = summarize(std::vector<double>{4, 3, 2, 1});
  EXPECT_DOUBLE_EQ(stats.lowerQuartile, 1.75);
  EXPECT_DOUBLE_EQ(stats.median, 2.5);
  EXPECT_DOUBLE_EQ(stats.upperQuartile, 3.25);
}

TEST(Summarize, GivesPercentilesAsNumpyDoes) {
  // numpy.percentile([7, 1, 3, 2, 10], [5, 95]) = [1.2, 9.4]
  const SampleStats few = summarize(std::vector<double>{7, 1, 3, 2, 10});
  EXPECT_DOUBLE_EQ(few.percentile5, 1.2);
  EXPECT_DOUBLE_EQ(few.percentile95, 9.4);
  std::vector<double> many(101);
  std::iota(many.rbegin(), many.rend(), 0.0);
  EXPECT_DOUBLE_EQ(summarize(many).percentile5, 5);
  EXPECT_DOUBLE_EQ(summarize(many).percentile95, 95);
  EXPECT_DOUBLE_EQ(summarize(std::vector<double>{4}).percentile95, 4);
}

TEST(Summarize, OfNothingCountsNothing) {
  EXPECT_EQ(summarize({}).count, 0);
  EXPECT_DOUBLE_EQ(summarize({}).spreadPercent(), 0);
}

TEST(SampleStats, SpreadIsHalfTheInterquartileRangeOverTheMedian) {
  const SampleStats stats{.median = 10, .lowerQuartile = 9, .upperQuartile = 11};
  EXPECT_DOUBLE_EQ(stats.spreadPercent(), 10);
}

TEST(Summarize, OrdersItsStatistics) {
  EXPECT_TRUE(rc::check([](const std::vector<double>& samples) {
    const SampleStats stats = summarize(samples);
    RC_ASSERT(stats.count == static_cast<int>(samples.size()));
    RC_ASSERT(stats.minimum <= stats.percentile5);
    RC_ASSERT(stats.percentile5 <= stats.lowerQuartile);
    RC_ASSERT(stats.lowerQuartile <= stats.median);
    RC_ASSERT(stats.median <= stats.upperQuartile);
    RC_ASSERT(stats.upperQuartile <= stats.percentile95);
  }));
}

TEST(Summarize, LeavesATwentiethOfTheSamplesOnEitherSide) {
  EXPECT_TRUE(rc::check([] {
    const auto samples = *rc::gen::nonEmpty<std::vector<int>>();
    const std::vector<double> values(samples.begin(), samples.end());
    const SampleStats stats = summarize(values);
    const auto below = std::ranges::count_if(values, [&](double value) { return value < stats.percentile5; });
    const auto above = std::ranges::count_if(values, [&](double value) { return value > stats.percentile95; });
    const double twentieth = 0.05 * static_cast<double>(values.size() - 1);
    RC_ASSERT(static_cast<double>(below) <= twentieth + 1.0);
    RC_ASSERT(static_cast<double>(above) <= twentieth + 1.0);
  }));
}

TEST(Summarize, MirrorsItsPercentiles) {
  EXPECT_TRUE(rc::check([] {
    const auto samples = *rc::gen::nonEmpty<std::vector<std::int16_t>>();
    std::vector<double> values(samples.begin(), samples.end());
    const SampleStats stats = summarize(values);
    for (double& value : values) value = -value;
    const SampleStats mirrored = summarize(values);
    RC_ASSERT(std::abs(stats.percentile5 + mirrored.percentile95) <= 1e-9);
    RC_ASSERT(std::abs(stats.percentile95 + mirrored.percentile5) <= 1e-9);
  }));
}

TEST(CompareRounds, TakesRatiosWithinARound) {
  // The machine doubles its speed half way: ratios do not see it.
  const std::vector<double> a = {20, 22, 24, 26, 10, 11, 12, 13};
  const std::vector<double> b = {10, 11, 12, 13, 5, 5.5, 6, 6.5};
  const RatioStats ratio = compareRounds(a, b);
  EXPECT_DOUBLE_EQ(ratio.median, 2);
  EXPECT_DOUBLE_EQ(ratio.low, 2);
  EXPECT_DOUBLE_EQ(ratio.high, 2);
  EXPECT_TRUE(ratio.isSignificant());
}

/// The ratios of 200 experiments of 40 rounds; a and b have these means and the same noise.
std::vector<RatioStats> experiments(double meanOfA, double meanOfB) {
  std::normal_distribution<double> noise(0.0, 2.0);
  std::vector<RatioStats> ratios;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<double> a(40);
    std::vector<double> b(40);
    for (double& value : a) value = meanOfA + noise(random);
    for (double& value : b) value = meanOfB + noise(random);
    ratios.push_back(compareRounds(a, b));
  }
  return ratios;
}

// On average 10 of 200 intervals miss the true ratio; three standard deviations of that count are 9.
constexpr std::ptrdiff_t kMostMisses = 10 + 9;

TEST(CompareRounds, RarelyClaimsADifferenceOfEqualNoise) {
  EXPECT_LE(std::ranges::count_if(experiments(100, 100), &RatioStats::isSignificant), kMostMisses);
}

TEST(CompareRounds, FindsADifferenceLargerThanTheNoise) {
  const std::vector<RatioStats> ratios = experiments(110, 100);
  EXPECT_TRUE(std::ranges::all_of(ratios, &RatioStats::isSignificant));
  const auto misses = [](const RatioStats& ratio) { return ratio.low > 1.1 || ratio.high < 1.1; };
  EXPECT_LE(std::ranges::count_if(ratios, misses), kMostMisses);
}

TEST(CompareRounds, ClaimsNothingFromFiveRounds) {
  const std::vector<double> a = {2, 2, 2, 2, 2};
  const std::vector<double> b = {1, 1, 1, 1, 1};
  EXPECT_FALSE(compareRounds(a, b).isSignificant());
}

TEST(CompareRounds, OfNothingIsOne) {
  EXPECT_DOUBLE_EQ(compareRounds({}, {}).median, 1);
  EXPECT_FALSE(compareRounds({}, {}).isSignificant());
}

/// Samples of two runs, without rounds in common.
std::vector<RatioStats> runsApart(double scaleA, double scaleB) {
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> noise(0.0, 0.1);
  std::vector<RatioStats> ratios;
  for (int i = 0; i < 200; ++i) {
    std::vector<double> a(40);
    std::vector<double> b(25);
    for (double& sample : a) sample = scaleA * noise(random);
    for (double& sample : b) sample = scaleB * noise(random);
    ratios.push_back(compareApart(a, b));
  }
  return ratios;
}

TEST(CompareApart, RarelyClaimsADifferenceOfEqualNoise) {
  EXPECT_LE(std::ranges::count_if(runsApart(100, 100), &RatioStats::isSignificant), kMostMisses);
}

TEST(CompareApart, FindsADifferenceLargerThanTheNoise) {
  const std::vector<RatioStats> ratios = runsApart(120, 100);
  EXPECT_TRUE(std::ranges::all_of(ratios, &RatioStats::isSignificant));
  const auto misses = [](const RatioStats& ratio) { return ratio.low > 1.2 || ratio.high < 1.2; };
  EXPECT_LE(std::ranges::count_if(ratios, misses), kMostMisses);
}

TEST(CompareApart, ClaimsNothingFromFewSamplesOrNone) {
  EXPECT_FALSE(compareApart(std::vector<double>{2, 2, 2}, std::vector<double>{1, 1, 1, 1, 1, 1, 1}).isSignificant());
  EXPECT_DOUBLE_EQ(compareApart(std::vector<double>{3, 2, 4}, std::vector<double>{2}).median, 1.5);
  EXPECT_DOUBLE_EQ(compareApart({}, std::vector<double>{2}).median, 1);
  EXPECT_DOUBLE_EQ(compareApart(std::vector<double>{2}, {}).median, 1);
}

// The share of n samples below a resampled median has the deviation 0.5 / sqrt(n).
TEST(CompareRounds, BoundsTheWorkOfManyRounds) {
  for (const std::size_t rounds : {std::size_t{1'000'000}, std::size_t{1'000'001}}) {
    std::vector<double> ratios(rounds);
    for (std::size_t i = 0; i < rounds; ++i) ratios[i] = 1.0 + static_cast<double>(i) / static_cast<double>(rounds);
    const RatioStats stats = compareRounds(ratios, std::vector(rounds, 1.0));
    EXPECT_NEAR(stats.high - stats.median, 1.96 * 0.5 / 1000.0, 1e-4);
    EXPECT_NEAR(stats.median - stats.low, 1.96 * 0.5 / 1000.0, 1e-4);
  }
}

// The interval of 1,000 rounds is resampled, that of 1,001 is not.
TEST(CompareRounds, GivesManyRoundsTheIntervalOfFewer) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(1.0, 0.1);
  std::vector<double> ratios(1001);
  for (double& ratio : ratios) ratio = noise(random);
  const std::vector<double> ones(1001, 1.0);
  const RatioStats many = compareRounds(ratios, ones), fewer = compareRounds(std::span(ratios).first(1000), ones);
  EXPECT_NEAR(many.low, fewer.low, 1e-3);
  EXPECT_NEAR(many.high, fewer.high, 1e-3);
}

TEST(CompareRounds, GivesTheSameIntervalEveryTime) {
  const std::vector<double> a = {1.1, 1.3, 0.9, 1.2, 1.0, 1.15, 1.05};
  const std::vector<double> b = {1.0, 1.1, 1.0, 1.0, 0.9, 1.1, 1.0};
  EXPECT_DOUBLE_EQ(compareRounds(a, b).low, compareRounds(a, b).low);
  EXPECT_LE(compareRounds(a, b).low, compareRounds(a, b).median);
  EXPECT_GE(compareRounds(a, b).high, compareRounds(a, b).median);
}

}  // namespace
}  // namespace fuseline
