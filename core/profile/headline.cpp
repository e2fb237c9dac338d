// Plans are compared round by round: a drift of the machine's speed changes both sides of a round alike.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/headline.h"

#include "core/support/text.h"

#include <cmath>

#include <fmt/format.h>

namespace fuseline {

namespace {

bool hasBoth(const ComparisonRow& row) {
  return row.fused.count > 0 && row.unfused.count > 0 && row.fused.median > 0.0 && row.unfused.median > 0.0;
}

std::string intervalText(const ComparisonRow& row) {
  if (row.fused.count < kRoundsForAClaim)
    return fmt::format(" ({} rounds; at least {} are needed for a confidence interval)", row.fused.count,
                       kRoundsForAClaim);
  return fmt::format(" (95 % CI {:.{}f} to {:.{}f}){}", row.speedup.low, decimalsOfSpeedup(row), row.speedup.high,
                     decimalsOfSpeedup(row), row.speedup.isSignificant() ? "" : ", not statistically significant");
}

/// Without an interval: where the two ratios are clearly apart.
std::string caveatOfFewRounds(const ComparisonRow& row, double ofMedians) {
  constexpr double kApart = 0.05;
  if (std::abs(ofMedians / row.speedup.median - 1.0) <= kApart) return {};
  return fmt::format("The ratio of the medians is {:.2f}x: {} rounds are too few to tell. Measure more rounds.",
                     ofMedians, row.fused.count);
}

}  // namespace

int decimalsOfSpeedup(const ComparisonRow& endToEnd) {
  const bool isNarrow = endToEnd.speedup.high - endToEnd.speedup.low < 0.02;
  return isNarrow && endToEnd.fused.count >= kRoundsForAClaim ? 3 : 2;
}

std::string headline(const ComparisonRow& endToEnd) {
  if (!hasBoth(endToEnd)) return {};
  return fmt::format("fused {}, unfused {}: speed-up {:.{}f}x in paired rounds{}",
                     formatDuration(endToEnd.fused.median), formatDuration(endToEnd.unfused.median),
                     endToEnd.speedup.median, decimalsOfSpeedup(endToEnd), intervalText(endToEnd));
}

std::string headlineCaveat(const ComparisonRow& endToEnd) {
  if (!hasBoth(endToEnd)) return {};
  const double ofMedians = endToEnd.unfused.median / endToEnd.fused.median;
  if (endToEnd.fused.count < kRoundsForAClaim) return caveatOfFewRounds(endToEnd, ofMedians);
  if (ofMedians >= endToEnd.speedup.low && ofMedians <= endToEnd.speedup.high) return {};
  return fmt::format(
      "The ratio of the medians, {:.3f}x, is outside this interval, {:.3f} to {:.3f}: the machine's speed changed "
      "between rounds. Run again on an idle machine.",
      ofMedians, endToEnd.speedup.low, endToEnd.speedup.high);
}

}  // namespace fuseline
