// TimelineView: draws tracks, and zooms, pans and walks them by keys and the mouse.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/models/timeline_area.h"
#include "ui/models/timeline_range.h"
#include "ui/models/timeline_stack.h"
#include "ui/models/timeline_walk.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QWidget>

#include <optional>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// Draws the tracks. The wheel, W and S zoom, dragging, A and D pan; Home shows all, F what is selected, Return what
/// the arrow keys stand on, Backspace what was shown before. Shift and a drag choose an area, R that of the current
/// box.
class TimelineView : public QWidget {
  Q_OBJECT

 public:
  TimelineView(Session& session, const Theme& theme, QWidget* parent = nullptr);

  /// Keeps what is in view as long as the tracks are as long.
  void setTracks(std::vector<TimelineTrack> tracks);
  const std::vector<TimelineTrack>& tracks() const { return m_stack.tracks(); }
  const TimelineRange& range() const { return m_range; }
  /// The box that the arrow keys go on from; nullptr before the first one.
  const TimelineItem* currentItem() const;
  /// Where a box is drawn, in the widget.
  QRectF areaOf(std::size_t track, std::size_t item) const;
  const std::optional<TimelineArea>& area() const { return m_area; }
  void setArea(std::optional<TimelineArea> area);
  /// All rows, as long as what is in view.
  void takeView();
  /// What the area measures, in a line; empty: there is none.
  QString measuredText() const;
  QSize sizeHint() const override;

 Q_SIGNALS:
  /// Not while it is still dragged.
  void areaChanged();
  /// The key that shows and hides the table.
  void sumsToggled();

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  struct Drag {
    QPointF from;
    double fromNs = 0.0;
    bool hasMoved = false;
    bool measures = false;
  };

  // Places.
  double timeAt(double x) const { return m_range.timeAt(x, width()); }
  const TimelineItem& itemAt(TimelinePlace place) const { return tracks()[place.track].items[place.item]; }
  std::optional<std::pair<std::size_t, TimelineCell>> cellAt(QPointF position) const;
  QString tipAt(QPointF position) const;
  bool isSelected(const TimelineItem& item) const;
  std::optional<TimelinePlace> firstSelected() const;
  bool fits(const TimelineArea& area) const;

  // Commands.
  bool isOwnKey(int key) const;
  bool handleView(int key);
  bool handleWalk(int key);
  bool handleArea(int key);
  void takeBox();
  void jumpTo(double startNs, double endNs);
  void showSelection();
  void back();
  void select(TimelinePlace place);
  void scrollAndZoom(QWheelEvent* event);

  Session& m_session;
  const Theme& m_theme;
  TimelineStack m_stack;
  std::vector<std::pair<std::size_t, std::size_t>> m_links;  // of the first two tracks
  TimelineRange m_range;
  std::vector<TimelineRange> m_earlier;
  double m_totalNs = 0.0;
  std::optional<TimelinePlace> m_cursor;
  std::optional<Drag> m_drag;
  std::optional<TimelineArea> m_area;
};

}  // namespace fuseline::ui
