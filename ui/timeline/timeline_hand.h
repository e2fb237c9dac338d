// TimelineHand: the mouse on a timeline: select, pan, zoom, choose a time range, arrange tracks by their headers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>
#include <QPointF>

#include <cstddef>
#include <optional>

class QContextMenuEvent;
class QMouseEvent;
class QWheelEvent;

namespace fuseline::ui {

class TimelineView;

/// Takes the events of the view's mouse.
class TimelineHand : public QObject {
 public:
  explicit TimelineHand(TimelineView& view);

  /// Where a dragged track would go; nothing where it stays.
  std::optional<double> dropY() const;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  enum class DragKind { Pan, Measure, Track };
  struct Drag {
    DragKind kind = DragKind::Pan;
    QPointF from;
    QPointF to;
    double fromNs = 0.0;
    std::size_t track = 0;  // whose head it is
    bool hasMoved = false;
  };
  bool press(const QMouseEvent& event);
  bool pressHead(std::size_t track, QPointF position);
  bool move(const QMouseEvent& event);
  bool release(const QMouseEvent& event);
  void click(QPointF position);
  void drop(const Drag& drag);
  bool doubleClick(const QMouseEvent& event);
  bool turn(QWheelEvent& event);
  void scrollAndZoom(const QWheelEvent& event);
  bool openMenu(const QContextMenuEvent& event);

  TimelineView& m_view;
  std::optional<Drag> m_drag;
};

}  // namespace fuseline::ui
