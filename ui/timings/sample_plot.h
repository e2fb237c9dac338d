// SamplePlot: the rounds of a row of the table of timings, plan by plan, on one axis of time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/comparison_text.h"
#include "core/profile/run_record.h"
#include "ui/timings/timings_columns.h"
#include "ui/widgets/axis_range.h"

#include <QString>

#include <cstddef>
#include <vector>

namespace fuseline::ui {

/// Samples of one plan.
struct SampleStrip {
  QString plan;
  bool isFused = false;
  std::vector<double> ns;  // one a round, in their order
  SampleStats stats;
  double meanNs = 0.0;
};

struct SamplePlot {
  QString title;
  std::vector<SampleStrip> strips;  // of the plans that have the row
  ColumnUnit unit;
  /// In the unit. Samples that are far from all others stand outside of it, so that these can be told apart.
  LinearRange axis;

  double inUnit(double ns) const { return ns / unit.size; }
  /// "4.812 ms"
  QString timeText(double ns) const;
};

/// After its strips have changed; there is one at least.
void chooseAxis(SamplePlot& plot);

/// Plot of a row; a replaced op has samples of the unfused plan only.
SamplePlot samplePlot(const RunRecord& record, const TimingsRow& row);

/// "Fused: round 3 of 40, 4.812 ms"
QString roundText(const SamplePlot& plot, const SampleStrip& strip, std::size_t round);
/// In a sentence, what a strip shows.
QString wordsOf(const SamplePlot& plot, const SampleStrip& strip);

}  // namespace fuseline::ui
