// One way to write a time, a spread and a speed-up.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/comparison_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fuseline {

std::string ColumnUnit::timeOf(double ns) const { return fmt::format("{:.3f}", ns / size); }

/// A value that rounds to zero has no sign.
std::string ColumnUnit::bytesOf(std::int64_t bytes) const {
  const std::string text = fmt::format("{:.2f}", static_cast<double>(bytes) / size);
  return text == "-0.00" ? "0.00" : text;
}

ColumnUnit timeUnitFor(double longestNs) {
  if (longestNs >= 1e9) return {"s", 1e9};
  return longestNs >= 1e6 ? ColumnUnit{"ms", 1e6} : ColumnUnit{"us", 1e3};
}

ColumnUnit byteUnitFor(double largest) {
  if (largest >= 1024.0 * 1024.0) return {"MiB", 1024.0 * 1024.0};
  return largest >= 1024.0 ? ColumnUnit{"KiB", 1024.0} : ColumnUnit{"B", 1.0};
}

namespace {

/// Fits most steps; one smaller where the shortest would have fewer than three digits.
ColumnUnit timeUnitOf(const Comparison& comparison) {
  constexpr double kThreeDigits = 0.1;  // columns have three decimals
  std::vector<double> times;
  for (const ComparisonRow& row : comparison.rows)
    for (const SampleStats* time : {&row.unfused, &row.fused})
      if (!row.isView && time->median > 0.0) times.push_back(time->median);
  if (times.empty()) return timeUnitFor(std::max(comparison.endToEnd.unfused.median, comparison.endToEnd.fused.median));
  const ColumnUnit usual = timeUnitFor(summarize(times).median);
  const double shortest = *std::ranges::min_element(times);
  return shortest >= kThreeDigits * usual.size ? usual : timeUnitFor(std::max(shortest, usual.size / 1e3));
}

}  // namespace

ComparisonUnits unitsOf(const Comparison& comparison) {
  double largest = std::abs(static_cast<double>(comparison.sum.bytesSaved));
  for (const ComparisonRow& row : comparison.rows)
    largest = std::max(largest, std::abs(static_cast<double>(row.bytesSaved)));
  return {.time = timeUnitOf(comparison), .bytes = byteUnitFor(largest)};
}

std::string spreadText(const SampleStats& stats) {
  constexpr double kLargest = 999.0;
  if (!stats.hasSpread()) return "-";
  return stats.spreadPercent() > kLargest ? ">999" : fmt::format("{:.1f}", stats.spreadPercent());
}

std::string ratioText(const RatioStats& speedup) {
  return fmt::format("{}{:.2f}x", speedup.isSignificant() ? "" : "~", speedup.median);
}

std::string ratioText(const ComparisonRow& row) {
  const bool hasBoth = row.unfused.count > 0 && row.fused.count > 0 && !row.isView;
  if (!hasBoth || row.unfused.median <= 0.0) return {};
  return row.isInBoth ? fmt::format("({:.2f}x)", row.speedup.median) : ratioText(row.speedup);
}

std::optional<SlowestRank> slowestRank(std::span<const double> rankNs) {
  if (rankNs.size() < 2) return std::nullopt;
  const auto [fastest, slowest] = std::ranges::minmax_element(rankNs);
  return SlowestRank{.rank = static_cast<std::size_t>(slowest - rankNs.begin()),
                     .excessPercent = *fastest > 0.0 ? 100.0 * (*slowest / *fastest - 1.0) : 0.0};
}

std::string slowestRankText(std::span<const double> rankNs) {
  const std::optional<SlowestRank> slowest = slowestRank(rankNs);
  return slowest ? fmt::format("{} ({:+.0f} %)", slowest->rank, slowest->excessPercent) : std::string();
}

std::vector<double> computeNsByRank(const VariantRecord& variant) {
  std::vector<double> sums;
  for (const StepRecord& step : variant.steps) {
    if (!step.collective.empty() || step.rankNs.empty()) continue;
    sums.resize(step.rankNs.size());
    for (std::size_t rank = 0; rank < sums.size(); ++rank) sums[rank] += step.rankNs[rank];
  }
  return sums;
}

std::string entryName(const ComparisonRow& row) {
  return row.depth == 0 && row.isFused ? row.label.substr(0, row.label.find('(')) : row.label;
}

bool isLastOfEntry(const Comparison& comparison, std::size_t index) {
  return index + 1 == comparison.rows.size() || comparison.rows[index + 1].depth == 0;
}

}  // namespace fuseline
