// Places and paints the dots and peaks of a roofline plot in a widget.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/roofline/roofline_plot.h"
#include "ui/theme/theme.h"

#include <QLineF>
#include <QPainter>
#include <QPen>
#include <QRectF>
#include <QSet>
#include <QString>

#include <optional>
#include <vector>

namespace fuseline::ui {

/// "bf16 800 TFLOP/s".
QString nameOf(const RooflineCeiling& ceiling);

/// The places of a plot in a rectangle, both axes logarithmic.
class RooflineScale {
 public:
  /// plot: lives as long as this.
  RooflineScale(const RooflinePlot& plot, const QRectF& rect);

  const RooflinePlot& plot() const { return m_plot; }
  const LogRange& intensity() const { return m_intensity; }
  const LogRange& speed() const { return m_speed; }
  double width() const { return m_rect.width(); }
  /// Within the axes.
  const QRectF& plotArea() const { return m_area; }
  double xOf(double intensity) const;
  double yOf(double gflops) const;
  QPointF centreOf(const RooflineDot& dot) const { return {xOf(dot.intensity), yOf(dot.gflops)}; }
  double radiusOf(const RooflineDot& dot) const;
  QRectF areaOf(std::size_t dot) const;
  std::optional<std::size_t> dotAt(QPointF position) const;
  std::vector<std::size_t> byTime() const;
  std::vector<std::size_t> coveredBy(std::size_t dot) const;

  std::optional<QLineF> bandwidthLine() const;
  QString memoryName() const;
  std::vector<QRectF> memoryNamePlaces() const;
  std::vector<QRectF> ceilingNames() const;
  /// "ridge 295 FLOP/byte": where the memory line meets the highest ceiling.
  QString ridgeName() const;
  /// nullopt: it is not in sight.
  std::optional<QRectF> ridgeNamePlace() const;

 private:
  QRectF areaIn() const;
  QRectF besideDots(QSizeF size, double from, double top) const;

  const RooflinePlot& m_plot;
  QRectF m_rect;
  LogRange m_intensity;
  LogRange m_speed;
  double m_longestNs = 0.0;
  QRectF m_area;
};

class RooflinePainter {
 public:
  /// cursor: the dot of the keyboard, where it is here. All of them live as long as this.
  RooflinePainter(QPainter& painter, const RooflineScale& scale, const QSet<QString>& selection,
                  std::optional<std::size_t> cursor, const Theme& theme);
  void paint();

 private:
  void paintAxes();
  void paintPublished();
  void paintBandwidthLine();
  void paintCeilings();
  void paintRidge();
  void paintArrows(bool isMarked);
  void paintArrow(const RooflineArrow& arrow, const QPen& pen);
  void paintDot(const RooflineDot& dot);
  void paintShape(Phase phase, QPointF centre, double size);
  void paintLabels();
  void paintLegend();
  std::optional<QRectF> freePlace(const QRectF& dot, QSizeF size, const std::vector<QRectF>& taken) const;
  bool isSelected(const RooflineDot& dot) const { return dot.isOneOf(m_selection); }
  const RooflinePlot& plot() const { return m_scale.plot(); }

  QPainter& m_painter;
  const RooflineScale& m_scale;
  const QSet<QString>& m_selection;
  std::optional<std::size_t> m_cursor;
  bool m_hasSelection;
  const Theme& m_theme;
};

}  // namespace fuseline::ui
