// Statistics of repeated measurements: median, quartiles and percentiles, never a bare mean.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace fuseline {

struct SampleStats {
  double median = 0.0;
  double lowerQuartile = 0.0;
  double upperQuartile = 0.0;
  double percentile5 = 0.0;
  double percentile95 = 0.0;
  double minimum = 0.0;
  int count = 0;

  /// Half the interquartile range over the median, in percent: the "± %" of tables.
  double spreadPercent() const;
  /// A single sample has no spread.
  bool hasSpread() const { return count > 1; }
};

/// Between two samples quantiles are interpolated linearly (Hyndman & Fan 1996, type 7).
SampleStats summarize(std::span<const double> samples);

/// The median of per-round ratios a[i] / b[i] and its bootstrap 95 % confidence interval.
struct RatioStats {
  double median = 1.0;
  double low = 1.0;
  double high = 1.0;
  /// The interval excludes 1.
  bool isSignificant() const { return low > 1.0 || high < 1.0; }
};

/// With fewer rounds not even that many equal signs reach 95 % (2 * 0.5^5 = 0.0625), so no claim is made.
inline constexpr int kRoundsForAClaim = 6;

RatioStats compareRounds(std::span<const double> a, std::span<const double> b);

/// a[i] / b[i], round by round.
std::vector<double> ratiosOf(std::span<const double> a, std::span<const double> b);

/// median(a) / median(b) of samples without common rounds, such as those of two runs, and its bootstrap 95 % confidence
/// interval. It covers the scatter within each run, but not changes of the machine between them.
RatioStats compareApart(std::span<const double> a, std::span<const double> b);

}  // namespace fuseline
