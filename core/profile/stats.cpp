// Medians, quartiles and a bootstrap interval with a fixed seed: the same samples always give the same statement.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/stats.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace fuseline {

namespace {

constexpr int kResamples = 2000;
constexpr std::size_t kMostResampled = 1000;
constexpr std::uint64_t kBootstrapSeed = 20240229;

/// Linear interpolation between order statistics (Hyndman & Fan 1996, type 7).
double quantile(std::span<const double> sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::vector<double> sortedCopy(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  return sorted;
}

/// Reorders `samples`.
double medianInPlace(std::vector<double>& samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(samples.begin(), middle));
}

/// The k-th smallest of n uniform numbers in [0, 1], counted from 1. It has a beta distribution.
double uniformOrderStatistic(std::size_t k, std::size_t n, std::mt19937_64& random) {
  std::gamma_distribution<double> below(static_cast<double>(k)), above(static_cast<double>(n - k + 1));
  const double share = below(random);
  return share / (share + above(random));
}

/// As bootstrapMedians(), from the distribution of the middle of a resample, which is not drawn as a whole.
std::vector<double> mediansOfMany(std::span<const double> samples, std::mt19937_64& random) {
  const std::vector<double> sorted = sortedCopy(samples);
  const std::size_t size = sorted.size();
  const auto at = [&](double share) {
    return sorted[std::min(static_cast<std::size_t>(share * static_cast<double>(size)), size - 1)];
  };
  std::vector<double> medians(kResamples);
  for (double& median : medians) {
    const double lower = uniformOrderStatistic((size + 1) / 2, size, random);
    median = at(lower);
    if (size % 2 == 1) continue;
    // The next one is the smallest of the upper half.
    median = 0.5 * (median + at(lower + (1.0 - lower) * uniformOrderStatistic(1, size / 2, random)));
  }
  return medians;
}

/// Medians of resamples with replacement.
std::vector<double> bootstrapMedians(std::span<const double> samples, std::mt19937_64& random) {
  if (samples.size() > kMostResampled) return mediansOfMany(samples, random);
  std::vector<double> medians(kResamples);
  std::vector<double> resample(samples.size());
  for (double& median : medians) {
    for (double& value : resample) value = samples[random() % samples.size()];
    median = medianInPlace(resample);
  }
  return medians;
}

/// Statistics of a ratio from its resamples.
RatioStats statsOf(double median, std::vector<double> resampled, std::size_t numRounds) {
  std::ranges::sort(resampled);
  RatioStats stats{.median = median, .low = quantile(resampled, 0.025), .high = quantile(resampled, 0.975)};
  if (numRounds >= std::size_t{kRoundsForAClaim}) return stats;
  stats.low = std::min(stats.low, 1.0);
  stats.high = std::max(stats.high, 1.0);
  return stats;
}

}  // namespace

double SampleStats::spreadPercent() const {
  return median > 0.0 ? 50.0 * (upperQuartile - lowerQuartile) / median : 0.0;
}

SampleStats summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  const std::vector<double> sorted = sortedCopy(samples);
  return {.median = quantile(sorted, 0.5),
          .lowerQuartile = quantile(sorted, 0.25),
          .upperQuartile = quantile(sorted, 0.75),
          .percentile5 = quantile(sorted, 0.05),
          .percentile95 = quantile(sorted, 0.95),
          .minimum = sorted.front(),
          .count = static_cast<int>(sorted.size())};
}

std::vector<double> ratiosOf(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (b[i] > 0.0) ratios.push_back(a[i] / b[i]);
  return ratios;
}

RatioStats compareRounds(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> ratios = ratiosOf(a, b);
  if (ratios.empty()) return {};
  std::mt19937_64 random(kBootstrapSeed);
  return statsOf(summarize(ratios).median, bootstrapMedians(ratios, random), ratios.size());
}

RatioStats compareApart(std::span<const double> a, std::span<const double> b) {
  const double base = summarize(b).median;
  if (a.empty() || base <= 0.0) return {};
  std::mt19937_64 random(kBootstrapSeed);
  const std::vector<double> mediansOfA = bootstrapMedians(a, random);
  const std::vector<double> mediansOfB = bootstrapMedians(b, random);
  const std::vector<double> ratios = ratiosOf(mediansOfA, mediansOfB);
  return statsOf(summarize(a).median / base, ratios, std::min(a.size(), b.size()));
}

}  // namespace fuseline
