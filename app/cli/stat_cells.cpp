// One way to write a spread and a speed-up.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/stat_cells.h"

#include <fmt/format.h>

namespace fuseline::cli {

ColumnUnit timeUnitFor(double longestNs) {
  if (longestNs >= 1e9) return {"s", 1e9};
  return longestNs >= 1e6 ? ColumnUnit{"ms", 1e6} : ColumnUnit{"us", 1e3};
}

std::string spreadText(const SampleStats& stats) {
  constexpr double kLargest = 999.0;
  if (!stats.hasSpread()) return "-";
  return stats.spreadPercent() > kLargest ? ">999" : fmt::format("{:.1f}", stats.spreadPercent());
}

Cell ratioOfSameStepCell(const RatioStats& speedup) { return {fmt::format("({:.2f}x)", speedup.median), Style::Dim}; }

Cell speedupCell(const RatioStats& speedup) {
  if (!speedup.isSignificant()) return {fmt::format("~{:.2f}x", speedup.median), Style::Dim};
  return {fmt::format("{:.2f}x", speedup.median), speedup.median > 1.0 ? Style::Good : Style::Bad};
}

Json ratioJson(const RatioStats& ratio) { return {{"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}}; }

}  // namespace fuseline::cli
