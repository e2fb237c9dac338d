// SweepPlot: the rows of a sweep as lines over the size.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/sweep_result.h"
#include "ui/widgets/axis_range.h"

#include <QString>

#include <cstddef>
#include <vector>

namespace fuseline::ui {

/// Quantity on the vertical axis.
enum class SweepQuantity {
  Speedup,          // of fusing
  Time,             // of both plans, from end to end
  OverFirstRecipe,  // of the fused plan, against that of the first recipe
};

struct SweepDot {
  double size = 0.0;
  double value = 0.0;
  double low = 0.0, high = 0.0;  // of the interval: 95 % of a ratio, quartiles of a time
  bool isClear = true;           // not to be told from 1 by chance
  std::size_t row = 0;           // of the result
  QString words;                 // a sentence
};

struct SweepSeries {
  QString name;    // "MXFP8BlockScaling, unfused"
  QString recipe;  // empty: there is one only
  int look = 0;    // color and mark: one a recipe
  bool isDashed = false;
  std::vector<SweepDot> dots;  // by size
};

/// From which size on, or up to which, fusing pays.
struct SweepBorder {
  double size = 0.0;
  int look = 0;
  QString text;  // "from 512 on"
};

struct SweepPlot {
  SweepQuantity quantity = SweepQuantity::Speedup;
  QString symbol;
  std::vector<double> sizes;  // all that were measured, ascending
  std::vector<SweepSeries> series;
  std::vector<SweepBorder> borders;
  AxisRange x, y;

  bool isEmpty() const { return series.empty(); }
  bool isRatio() const { return quantity != SweepQuantity::Time; }
};

/// Plot of the measured points; empty if there are none, or only one recipe to compare.
SweepPlot sweepPlot(const SweepResult& result, SweepQuantity quantity);

/// Axis label: "speed-up of fusing".
QString nameOf(SweepQuantity quantity);

}  // namespace fuseline::ui
