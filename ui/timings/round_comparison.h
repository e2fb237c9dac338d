// RoundComparison: how the rounds of a row spread in this run and in a baseline, on one axis.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/baselines.h"
#include "ui/timings/sample_plot.h"

#include <QString>

#include <vector>

namespace fuseline::ui {

/// One run's rounds. Shares are of all its rounds, so that runs of different lengths stand beside each other.
struct RoundHistogram {
  SampleStats stats;
  std::vector<double> shares;  // one a bin, all as wide; the outermost also have what is beyond them
};

struct RoundComparison {
  QString title;
  QString baseline;  // "A: before the change"
  int slot = 0;
  QString missing;  // a sentence why there is nothing to compare; mostly empty
  ColumnUnit unit;
  LinearRange axis;  // in the unit
  RoundHistogram base, next;
  MetricChange change;

  double inUnit(double ns) const { return ns / unit.size; }
  double largestShare() const;
};

/// Compares rounds of the fused plan if both runs have the row there, otherwise of the unfused plan.
RoundComparison compareRoundsOf(const RunRecord& run, const Baseline& baseline, const TimingsRow& row);

/// "A: 4.812 ms, now 4.611 ms: -4.2 % (95 % interval -5.1 % to -3.0 %)", and whether that is statistically significant.
QString wordsOf(const RoundComparison& comparison);

}  // namespace fuseline::ui
