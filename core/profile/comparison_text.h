// Times, spreads and ratios as tables show them: one unit per column, and marks for differences that are not
// statistically significant.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// One unit for a whole column, so that numbers can be compared by eye.
struct ColumnUnit {
  const char* name = "us";
  double size = 1e3;

  /// "12.345", without the unit.
  std::string timeOf(double ns) const;
  std::string timeOf(const SampleStats& stats) const { return timeOf(stats.median); }
  /// "128.00", without the unit.
  std::string bytesOf(std::int64_t bytes) const;
};
ColumnUnit timeUnitFor(double longestNs);
ColumnUnit byteUnitFor(double largest);

/// The units of a comparison's columns: steps have three digits, and the largest saving is in its own unit.
struct ComparisonUnits {
  ColumnUnit time;
  ColumnUnit bytes;
};
ComparisonUnits unitsOf(const Comparison& comparison);

/// "1.2", the "± %" of tables; ">999" when the machine was busy with something else, "-" of one sample.
std::string spreadText(const SampleStats& stats);
/// "1.25x"; "~1.02x" if it is not statistically significant.
std::string ratioText(const RatioStats& speedup);
/// The same for a row: "(0.97x)" for a step that both plans have, which is not counted as a speed-up. Empty if one side
/// was not measured.
std::string ratioText(const ComparisonRow& row);

/// Times of a step, or of all steps, by rank: the index of the slowest rank, and its time over that of the
/// fastest, in percent. Nothing for less than two ranks.
struct SlowestRank {
  std::size_t rank = 0;
  double excessPercent = 0.0;
};
std::optional<SlowestRank> slowestRank(std::span<const double> rankNs);
/// "1 (+9 %)"; empty for less than two ranks.
std::string slowestRankText(std::span<const double> rankNs);
/// By rank: the sum of the medians of all steps that do not communicate.
std::vector<double> computeNsByRank(const VariantRecord& variant);

/// A fused entry has its rule's name, because its ops are listed below it; others have that of their step.
std::string entryName(const ComparisonRow& row);
/// Whether no part of the same entry follows.
bool isLastOfEntry(const Comparison& comparison, std::size_t index);

}  // namespace fuseline
