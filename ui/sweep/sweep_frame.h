// SweepFrame: where the dots, ticks and legend of a sweep's chart are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/sweep/sweep_plot.h"

#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <QString>

#include <cstddef>
#include <optional>
#include <vector>

namespace fuseline::ui {

constexpr double kSweepGapPx = 5.0;
constexpr double kSweepLegendLinePx = 22.0;
constexpr double kSweepReachPx = 9.0;  // around a dot, for the pointer

/// A dot of a plot.
struct SweepPlace {
  std::size_t series = 0;
  std::size_t dot = 0;
};

/// A recipe with its mark, or, without one, what a kind of line or of mark means.
struct SweepLegendEntry {
  QString text;
  std::optional<int> look = {};
  bool isDashed = false;
  bool isHollow = false;
  QPointF place = {};
};

/// The geometry of a plot in a widget of this size.
class SweepFrame {
 public:
  SweepFrame(const SweepPlot& plot, QSizeF size) : m_plot(plot), m_size(size) {}

  const SweepPlot& plot() const { return m_plot; }
  QSizeF size() const { return m_size; }
  QRectF plotArea() const;
  std::vector<SweepLegendEntry> legend() const;
  double xOf(double size) const;
  double yOf(double value) const;
  QPointF placeOf(const SweepDot& dot) const;
  QString valueText(double value) const;
  std::vector<double> valueTicks() const;
  /// The nearest dot within reach of the pointer.
  std::optional<SweepPlace> placeAt(QPointF position) const;

 private:
  void placeInLines(std::vector<SweepLegendEntry>& entries) const;
  double legendHeight() const;

  const SweepPlot& m_plot;
  QSizeF m_size;
};

}  // namespace fuseline::ui
