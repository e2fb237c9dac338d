// PlanPanel: two lanes, forward above and backward below, with one box for every launch, aligned by op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/fusions/plan_lanes.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/widgets/elided_label.h"

#include <QFont>
#include <QHash>
#include <QLabel>
#include <QLayout>
#include <QScrollArea>
#include <QSlider>
#include <QWidget>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// Draws the lanes. Left and right walk from box to box, up and down from lane to lane.
class LanesView : public QWidget {
  Q_OBJECT

 public:
  LanesView(Session& session, const Theme& theme, QWidget* parent = nullptr);
  const PlanLanes& lanes() const { return m_lanes; }
  using TipOf = std::function<QString(const LaneBox&, Phase)>;
  void setLanes(PlanLanes lanes, TipOf tipOf);
  /// The box that the arrow keys go on from; nullptr before the first one, and when something else is selected.
  const LaneBox* currentBox() const;
  QSize sizeHint() const override;

 Q_SIGNALS:
  /// A box was chosen that should be in view.
  void chosen(const QRect& area);
  /// The box of a selection made elsewhere should be in view.
  void revealed(const QRect& area);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  /// A box by lane and place.
  struct Place {
    bool isBackward = false;
    std::size_t index = 0;
  };
  const std::vector<LaneBox>& lane(bool isBackward) const { return isBackward ? m_lanes.backward : m_lanes.forward; }
  const LaneBox& boxOf(Place place) const { return lane(place.isBackward)[place.index]; }
  bool isExactlySelected(const LaneBox& box) const;
  std::optional<Place> current() const;
  std::optional<Place> neighbour(int key) const;
  std::optional<Place> acrossFrom(Place place) const;
  double columnLeft(int column) const;
  QRectF boxArea(const LaneBox& box, bool isBackward) const;
  std::optional<Place> placeAt(QPointF position) const;
  bool isSelected(const LaneBox& box) const;
  double widthOf(const QString& text);
  void measureColumns();
  void paintHeads(QPainter& painter) const;
  void paintLane(QPainter& painter, bool isBackward) const;
  void paintBox(QPainter& painter, const LaneBox& box, bool isBackward) const;
  void paintCursor(QPainter& painter) const;
  void select(Place place);
  void followSelection();

  Session& m_session;
  const Theme& m_theme;
  PlanLanes m_lanes;
  TipOf m_tipOf;
  std::vector<double> m_columnEdges;
  QHash<QString, double> m_textWidths;  // in this font, of earlier lanes, too: most texts stay after an edit
  QFont m_measuredFont;
  std::optional<Place> m_cursor;  // the box last chosen here
};

class PlanPanel : public QWidget {
  Q_OBJECT

 public:
  PlanPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  LanesView* lanesView() const { return m_lanesView; }
  QString summary() const { return m_summary->toolTip(); }
  /// Why there is no plan, with a link to the errors; hidden while there is one.
  QLabel* unplanned() const { return m_unplanned; }

 private:
  QLayout* makeHead();
  FusionStage stage() const { return kFusionStages[static_cast<std::size_t>(m_stage->value())]; }
  QString summaryText() const;
  void refresh();

  Session& m_session;
  ElidedLabel* m_summary;
  QLabel* m_unplanned;
  QSlider* m_stage;
  QLabel* m_stageName;
  LanesView* m_lanesView;
};

}  // namespace fuseline::ui
