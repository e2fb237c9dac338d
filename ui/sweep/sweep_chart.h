// SweepChart: draws a sweep over its sizes, one color and one mark a recipe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/sweep/sweep_frame.h"
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
  QPointF placeOf(const SweepDot& dot) const { return SweepFrame(m_plot, size()).placeOf(dot); }
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
  const SweepDot& at(const SweepPlace& place) const { return m_plot.series[place.series].dots[place.dot]; }

  std::optional<SweepPlace> neighbour(int key) const;
  std::optional<SweepPlace> inSeries(std::ptrdiff_t series) const;
  static bool isOwnKey(int key);
  void choose(const SweepPlace& place);
  void describe();

  const Theme& m_theme;
  SweepPlot m_plot;
  std::optional<SweepPlace> m_cursor;
};

}  // namespace fuseline::ui
