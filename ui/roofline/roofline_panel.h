// RooflinePanel: compares each step with its roofline limit, and shows the effect of fusions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/roofline/roofline_plot.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/timings/run_filter_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QWidget>

#include <optional>

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
  // Places.
  std::optional<std::size_t> dotAt(QPointF position) const;
  bool isSelected(const RooflineDot& dot) const;
  std::optional<std::size_t> neighbour(int key) const;
  std::optional<std::size_t> besideInPlan(int by) const;
  std::optional<std::size_t> inOtherPlan() const;

  // Commands.
  void select(std::size_t dot);
  void followSelection();
  void describe();

  Session& m_session;
  const Theme& m_theme;
  RooflinePlot m_plot;
  std::optional<std::size_t> m_cursor;
};

class RooflinePanel : public QWidget {
  Q_OBJECT

 public:
  RooflinePanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  /// Shows the steps that the filter keeps, with its chips above them. filter outlives the panel.
  void setFilter(RunFilter& filter);
  RooflineView* view() const { return m_view; }
  QString caption() const { return m_caption->text(); }
  /// Why there is nothing to see; empty where there is.
  QString emptyText() const;

 private:
  void refresh();
  void refreshCaption();

  Session& m_session;
  const Theme& m_theme;
  QHBoxLayout* m_head;
  QLabel* m_caption;
  QLabel* m_empty;
  RooflineView* m_view;
  RunFilter* m_filter = nullptr;
  QWidget* m_filterButton = nullptr;
};

}  // namespace fuseline::ui
