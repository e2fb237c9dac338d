// TimelineView: draws tracks, and zooms, pans and walks them by keys and the mouse.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/timeline/timeline_area.h"
#include "ui/timeline/timeline_links.h"
#include "ui/timeline/timeline_notes.h"
#include "ui/timeline/timeline_range.h"
#include "ui/timeline/timeline_stack.h"
#include "ui/timeline/timeline_walk.h"

#include <QWidget>

#include <functional>
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
  const TimelineStack& stack() const { return m_stack; }
  const TimelineRange& range() const { return m_range; }
  /// Folds, pins, moves or hides tracks or rows.
  void arrange(const std::function<void(TimelineStack&)>& change);
  /// The box that the arrow keys go on from; nullptr before the first one.
  const TimelineItem* currentItem() const;
  /// Shows notes on time ranges in lanes below the ruler; clicking one selects its range.
  void setNotes(const std::vector<StretchNote>& notes);
  /// Makes a box the current one, selects its ops and brings it into view.
  void goTo(TimelinePlace place);
  /// Boxes to mark; in ascending order.
  void setMatches(std::vector<TimelinePlace> matches);
  /// Where a box is drawn, in the widget.
  QRectF areaOf(std::size_t track, std::size_t item) const;
  const std::optional<TimelineArea>& area() const { return m_area; }
  void setArea(std::optional<TimelineArea> area);
  /// All rows, as long as what is in view.
  void takeView();
  /// Length of the selected time range, on one line; empty if there is none.
  QString measuredText() const;
  QSize sizeHint() const override;

 Q_SIGNALS:
  /// Not while it is still dragged.
  void areaChanged();
  /// The key that shows and hides the table.
  void sumsToggled();
  /// The user wants to say something of the area.
  void noteWanted();
  void arrangementChanged();
  void tracksChanged();
  void findWanted();
  /// Asks to pin the details of a box as a card at this place. title: name of the box.
  void pinWanted(const QString& html, const QString& title, QPoint place);
  /// A box was gone to that may be scrolled out of sight.
  void revealed(const QRect& area);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void moveEvent(QMoveEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

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

  // Places.
  double timeAt(double x) const { return m_range.timeAt(x, width()); }
  const TimelineItem& itemAt(TimelinePlace place) const { return tracks()[place.track].items[place.item]; }
  std::optional<std::pair<std::size_t, TimelineCell>> cellAt(QPointF position) const;
  QString tipAt(QPointF position) const;
  const PlacedNote* noteAt(QPointF position) const;
  QString headTipAt(std::size_t track, QPointF position) const;
  std::optional<std::size_t> headAt(QPointF position) const;
  std::optional<std::size_t> currentTrack() const;
  bool isSelected(const TimelineItem& item) const;
  void followSelection();

  // Commands.
  bool isOwnKey(int key) const;
  bool isOwnKey(const QKeyEvent& event) const;
  bool handleView(int key);
  bool handleWalk(int key);
  bool handleArea(int key);
  bool handleTrack(int key, Qt::KeyboardModifiers modifiers);
  bool pressHead(std::size_t track, QPointF position);
  void drop(const Drag& drag);
  std::optional<double> dropY() const;
  void followScroll();
  void dropHidden();
  void followStack();
  void takeBox();
  void takeNote();
  void takeNoted(const StretchNote& note);
  void jumpTo(double startNs, double endNs);
  void showSelection();
  void back();
  void pinTip();
  void scrollAndZoom(QWheelEvent* event);

  Session& m_session;
  const Theme& m_theme;
  TimelineStack m_stack;
  std::vector<TimelineLink> m_links;                   // of the first two tracks
  std::vector<std::vector<TimelineLink>> m_passLinks;  // by track, forward to backward
  std::vector<TimelinePlace> m_matches;
  std::vector<PlacedNote> m_notes;
  TimelineRange m_range;
  std::vector<TimelineRange> m_earlier;
  double m_totalNs = 0.0;
  std::optional<TimelinePlace> m_cursor;
  std::optional<Drag> m_drag;
  std::optional<TimelineArea> m_area;
};

}  // namespace fuseline::ui
