// RoundComparisonView: the rounds of a row in this run over those in the reference baseline, as shares of each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"
#include "ui/timings/round_comparison.h"

#include <QPainter>
#include <QWidget>

namespace fuseline::ui {

/// This run is filled, the baseline hatched in its own color; a line each at the medians, and in words beneath, how
/// far they are apart.
class RoundComparisonView : public QWidget {
  Q_OBJECT

 public:
  explicit RoundComparisonView(const Theme& theme, QWidget* parent = nullptr);
  void setComparison(RoundComparison comparison);
  const RoundComparison& comparison() const { return m_comparison; }
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QRectF plotArea() const;
  double xOf(double ns) const;
  QPolygonF outlineOf(const RoundHistogram& side) const;
  void paintTitle(QPainter& painter) const;
  void paintSides(QPainter& painter) const;
  void paintMedian(QPainter& painter, const RoundHistogram& side, const QPen& pen) const;
  void paintWords(QPainter& painter) const;

  const Theme& m_theme;
  RoundComparison m_comparison;
};

}  // namespace fuseline::ui
