// MemoryChart: draws a plan's memory in use, a column a step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/memory/memory_plot.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QWidget>

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

namespace fuseline::ui {

/// Left and Right walk the steps, Home and End go to the first and the last one; a click selects a step's ops.
class MemoryChart : public QWidget {
  Q_OBJECT

 public:
  MemoryChart(Session& session, const Theme& theme, QWidget* parent = nullptr);

  void setPlot(MemoryPlot plot);
  const MemoryPlot& plot() const { return m_plot; }
  /// Hides memory that is in use during the whole plan.
  void setOnlyChanging(bool isOnly);
  bool isOnlyChanging() const { return m_isOnlyChanging; }
  /// The column that the keys stand on; nullptr before the first one.
  const MemoryColumn* currentColumn() const { return m_cursor ? &m_plot.columns[*m_cursor] : nullptr; }
  /// Where a column is drawn, in the widget.
  QRectF areaOf(std::size_t column) const;
  QString tipAt(QPointF position) const;
  QSize minimumSizeHint() const override;

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  struct LegendEntry {
    MemoryPurpose purpose;
    QString text;
    QPointF place;
  };

  // Geometry.
  std::vector<LegendEntry> legend() const;
  QRectF plotArea() const;
  double columnWidth() const;
  double yOf(double bytes) const;
  const std::vector<MemoryPurpose>& shown() const;
  std::int64_t bytesOf(const MemoryColumn& column) const;
  double unitBytes() const;

  // Places and commands.
  std::optional<std::size_t> columnAt(QPointF position) const;
  std::optional<std::size_t> neighbour(int key) const;
  bool isSelected(const MemoryColumn& column) const;
  static bool isOwnKey(int key);
  void select(std::size_t column);
  void followSelection();
  void describe();
  void rescale();

  // Painting.
  QBrush brushOf(MemoryPurpose purpose) const;
  void paintAxes(QPainter& painter) const;
  void paintColumns(QPainter& painter) const;
  void paintColumn(QPainter& painter, const MemoryColumn& column, const QRectF& place) const;
  void paintNames(QPainter& painter) const;
  void paintMarks(QPainter& painter) const;
  void paintPassBorders(QPainter& painter) const;
  std::optional<double> paintBorder(QPainter& painter, Phase phase) const;
  void paintAllocated(QPainter& painter) const;
  void paintLegend(QPainter& painter) const;

  Session& m_session;
  const Theme& m_theme;
  MemoryPlot m_plot;
  std::set<MemoryPurpose> m_used;  // by a step
  bool m_isOnlyChanging = false;
  double m_highestBytes = 1.0;
  std::optional<std::size_t> m_cursor;
};

}  // namespace fuseline::ui
