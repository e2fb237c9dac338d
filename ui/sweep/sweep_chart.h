// SweepChart: draws a sweep over its sizes, one color and one mark a recipe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/sweep/sweep_plot.h"
#include "ui/theme/theme.h"

#include <QWidget>

#include <optional>
#include <vector>

namespace fuseline::ui {

/// Left and Right walk the sizes of a line, Up and Down go to the next line. The dot they stand on is said in a
/// sentence, as it is under the pointer; Enter and a double click open its run.
class SweepChart : public QWidget {
  Q_OBJECT

 public:
  explicit SweepChart(const Theme& theme, QWidget* parent = nullptr);

  void setPlot(SweepPlot plot);
  const SweepPlot& plot() const { return m_plot; }
  /// The dot that the keys stand on; nullptr before the first one.
  const SweepDot* currentDot() const { return m_cursor ? &at(*m_cursor) : nullptr; }
  /// Marks this row's dot, and stays on the line where it can.
  void setCurrentRow(std::size_t row);
  /// Where a dot is drawn, in the widget.
  QPointF placeOf(const SweepDot& dot) const;
  QString wordsAt(QPointF position) const;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  /// By the keys or the mouse.
  void rowChosen(std::size_t row);
  void rowOpened(std::size_t row);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;

 private:
  struct Place {
    std::size_t series = 0;
    std::size_t dot = 0;
  };
  const SweepDot& at(const Place& place) const { return m_plot.series[place.series].dots[place.dot]; }

  /// A recipe with its mark, or, without one, what a kind of line or of mark means.
  struct LegendEntry {
    QString text;
    std::optional<int> look = {};
    bool isDashed = false;
    bool isHollow = false;
    QPointF place = {};
  };

  // Geometry.
  QRectF plotArea() const;
  std::vector<LegendEntry> legend() const;
  void placeInLines(std::vector<LegendEntry>& entries) const;
  double legendHeight() const;
  double xOf(double size) const;
  double yOf(double value) const;
  QString valueText(double value) const;
  std::vector<double> valueTicks() const;

  // Places.
  std::optional<Place> placeAt(QPointF position) const;
  std::optional<Place> neighbour(int key) const;
  std::optional<Place> inSeries(std::ptrdiff_t series) const;
  static bool isOwnKey(int key);
  void choose(const Place& place);
  void describe();

  QString whyNothing() const;

  // Painting.
  QColor colorOf(int look) const;
  void paintNothing(QPainter& painter) const;
  void paintAxes(QPainter& painter) const;
  void paintSizes(QPainter& painter) const;
  void paintReference(QPainter& painter) const;
  void paintBorders(QPainter& painter) const;
  void paintSeries(QPainter& painter, const SweepSeries& series) const;
  void paintWhisker(QPainter& painter, const SweepDot& dot) const;
  void paintCursor(QPainter& painter) const;
  void paintLegend(QPainter& painter, const LegendEntry& entry) const;

  const Theme& m_theme;
  SweepPlot m_plot;
  std::optional<Place> m_cursor;
};

}  // namespace fuseline::ui
