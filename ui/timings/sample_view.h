// SampleView: how the rounds of a row are spread, a strip of dots a plan, with what sums them up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"
#include "ui/timings/sample_plot.h"

#include <QPainter>
#include <QWidget>

#include <optional>

namespace fuseline::ui {

/// A dot a round: across the time that it took, down in the order of the rounds, so that a drift is a slant. Left and
/// Right walk the rounds, Up and Down the plans.
class SampleView : public QWidget {
  Q_OBJECT

 public:
  explicit SampleView(const Theme& theme, QWidget* parent = nullptr);
  void setPlot(SamplePlot plot);
  const SamplePlot& plot() const { return m_plot; }

  struct Dot {
    std::size_t strip = 0;
    std::size_t round = 0;
    bool operator==(const Dot&) const = default;
  };
  /// Where the keys are.
  std::optional<Dot> cursor() const { return m_cursor; }
  QPointF placeOf(const Dot& dot) const;
  /// The nearest one that the pointer is on.
  std::optional<Dot> dotAt(QPointF place) const;
  /// Tooltip of the dot at this place, or of its strip.
  QString tipAt(QPointF place) const;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF plotArea() const;
  QRectF bandOf(std::size_t strip) const;
  double xOf(double ns) const;
  QColor colorOf(const SampleStrip& strip) const;
  Dot neighbour(int key) const;
  void hover(const std::optional<Dot>& dot);
  void describe();
  void paintStrip(QPainter& painter, std::size_t strip) const;
  void paintSums(QPainter& painter, const SampleStrip& strip, const QRectF& band) const;
  void paintDots(QPainter& painter, std::size_t strip) const;
  void paintMarked(QPainter& painter, const Dot& dot) const;
  void paintLegend(QPainter& painter) const;

  const Theme& m_theme;
  SamplePlot m_plot;
  std::optional<Dot> m_cursor;
  std::optional<Dot> m_hovered;
};

}  // namespace fuseline::ui
