// PlanPanel: two lanes, forward above and backward below, with one box for every launch, aligned by op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/models/plan_lanes.h"
#include "ui/panels/elided_label.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QScrollArea>
#include <QWidget>

#include <utility>
#include <vector>

namespace fuseline::ui {

/// Draws the lanes. Arrow keys walk from box to box.
class LanesView : public QWidget {
  Q_OBJECT

 public:
  LanesView(Session& session, const Theme& theme, QWidget* parent = nullptr);
  const PlanLanes& lanes() const { return m_lanes; }
  void setLanes(PlanLanes lanes);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  double columnLeft(int column) const;
  QRectF boxArea(const LaneBox& box, bool isBackward) const;
  const LaneBox* boxAt(QPointF position) const;
  bool isSelected(const LaneBox& box) const;
  void measureColumns();
  void paintHeads(QPainter& painter) const;
  void paintLane(QPainter& painter, bool isBackward) const;
  void paintBox(QPainter& painter, const LaneBox& box, bool isBackward) const;
  void select(const LaneBox& box);

  Session& m_session;
  const Theme& m_theme;
  PlanLanes m_lanes;
  std::vector<double> m_columnEdges;
};

class PlanPanel : public QWidget {
  Q_OBJECT

 public:
  PlanPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  LanesView* lanesView() const { return m_lanesView; }

 private:
  void refresh();
  Session& m_session;
  ElidedLabel* m_summary;
  LanesView* m_lanesView;
};

}  // namespace fuseline::ui
