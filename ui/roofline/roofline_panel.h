// RooflinePanel: how far each step is from the roofs of its device, and what fusions moved.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/roofline/roofline_plot.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QLabel>
#include <QLineF>
#include <QWidget>

#include <optional>
#include <vector>

namespace fuseline::ui {

/// Draws the plot, both axes logarithmic. A dot's area is its time; a circle runs forward, a diamond backward; those of
/// the fused plan are filled. A click selects the op, and so do the arrow keys, which walk the dots of a plan with Left
/// and Right and go to the other plan with Up and Down.
class RooflineView : public QWidget {
  Q_OBJECT

 public:
  RooflineView(Session& session, const Theme& theme, QWidget* parent = nullptr);

  void setPlot(RooflinePlot plot);
  const RooflinePlot& plot() const { return m_plot; }
  /// The dot that the arrow keys go on from; nullptr before the first one.
  const RooflineDot* currentDot() const { return m_cursor ? &m_plot.dots[*m_cursor] : nullptr; }
  /// Where a dot is drawn, in the widget.
  QRectF areaOf(std::size_t dot) const;
  QString tipAt(QPointF position) const;
  QSize minimumSizeHint() const override;

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  // Geometry.
  QRectF plotArea() const;
  double xOf(double intensity) const;
  double yOf(double gflops) const;
  QPointF centreOf(const RooflineDot& dot) const { return {xOf(dot.intensity), yOf(dot.gflops)}; }
  double radiusOf(const RooflineDot& dot) const;
  std::vector<QRectF> ceilingNames() const;

  // Places.
  std::optional<std::size_t> dotAt(QPointF position) const;
  bool isSelected(const RooflineDot& dot) const;
  std::optional<std::size_t> neighbour(int key) const;
  std::optional<std::size_t> besideInPlan(int by) const;
  std::optional<std::size_t> inOtherPlan() const;
  bool hasSelection() const;

  // Commands.
  static bool isOwnKey(int key);
  void select(std::size_t dot);
  void followSelection();
  void describe();

  // Painting.
  void paintAxes(QPainter& painter) const;
  std::optional<QLineF> memoryRoof() const;
  QString memoryName() const;
  std::vector<QRectF> memoryNamePlaces() const;
  void paintMemoryRoof(QPainter& painter) const;
  void paintCeilings(QPainter& painter) const;
  void paintPublished(QPainter& painter) const;
  void paintArrows(QPainter& painter, bool isMarked) const;
  void paintArrow(QPainter& painter, const RooflineArrow& arrow, const QPen& pen) const;
  void paintDot(QPainter& painter, const RooflineDot& dot) const;
  void paintLabels(QPainter& painter) const;
  void paintLegend(QPainter& painter) const;
  std::vector<std::size_t> coveredBy(std::size_t dot) const;
  std::optional<QRectF> freePlace(const QRectF& dot, QSizeF size, const std::vector<QRectF>& taken) const;
  std::vector<std::size_t> byTime() const;

  Session& m_session;
  const Theme& m_theme;
  RooflinePlot m_plot;
  LogRange m_intensity;
  LogRange m_speed;
  double m_longestNs = 0.0;
  std::optional<std::size_t> m_cursor;
};

class RooflinePanel : public QWidget {
  Q_OBJECT

 public:
  RooflinePanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  RooflineView* view() const { return m_view; }
  QString caption() const { return m_caption->text(); }
  /// Why there is nothing to see; empty where there is.
  QString emptyText() const;

 private:
  void refresh();
  void refreshCaption();

  Session& m_session;
  const Theme& m_theme;
  QLabel* m_caption;
  QLabel* m_empty;
  RooflineView* m_view;
};

}  // namespace fuseline::ui
