// SweepPainter: one picture of a sweep's chart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/sweep/sweep_frame.h"
#include "ui/theme/theme.h"

#include <QColor>
#include <QPainter>
#include <QString>

namespace fuseline::ui {

/// A sentence for a plot that is empty.
QString whyNothing(const SweepPlot& plot);

class SweepPainter {
 public:
  SweepPainter(QPainter& painter, const SweepFrame& frame, const Theme& theme)
      : m_painter(painter), m_frame(frame), m_theme(theme) {}

  void paint();
  /// Marks the dot that the keys stand on.
  void paintCursor(const SweepDot& dot, bool hasFocus);

 private:
  const SweepPlot& plot() const { return m_frame.plot(); }
  QColor colorOf(int look) const;
  void paintNothing();
  void paintAxes();
  void paintSizes();
  void paintReference();
  void paintBorders();
  void paintSeries(const SweepSeries& series);
  void paintWhisker(const SweepDot& dot);
  void paintLegend(const SweepLegendEntry& entry);

  QPainter& m_painter;
  const SweepFrame& m_frame;
  const Theme& m_theme;
};

}  // namespace fuseline::ui
