// TimelineView: draws tracks, and keeps what is in view, the current box and the chosen time range.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/selection.h"
#include "ui/theme/theme.h"
#include "ui/timeline/timeline_area.h"
#include "ui/timeline/timeline_hand.h"
#include "ui/timeline/timeline_hits.h"
#include "ui/timeline/timeline_keys.h"
#include "ui/timeline/timeline_links.h"
#include "ui/timeline/timeline_walk.h"
#include "ui/timeline/timeline_zoom.h"

#include <QWidget>

#include <functional>
#include <optional>
#include <vector>

namespace fuseline::ui {

/// Draws the tracks. The wheel zooms, dragging pans, Shift and a drag choose an area; keys are those of TimelineKeys.
class TimelineView : public QWidget {
  Q_OBJECT

 public:
  TimelineView(Selection& selection, const Theme& theme, QWidget* parent = nullptr);

  /// Keeps what is in view as long as the tracks are as long.
  void setTracks(std::vector<TimelineTrack> tracks);
  const ArrangedTracks& tracks() const { return m_stack.tracks(); }
  const TimelineStack& stack() const { return m_stack; }
  /// The caller updates the view.
  TimelineZoom& zoom() { return m_zoom; }
  TimelineKeys& keys() { return *m_keys; }
  Selection& selection() { return m_selection; }
  TimelineHits hits() const;
  double timeAt(double x) const { return m_zoom.range().timeAt(x, width()); }
  /// Folds, pins, moves or hides tracks or rows.
  void arrange(const std::function<void(ArrangedTracks&)>& change);
  /// The box that the arrow keys go on from; nothing before the first one.
  std::optional<TimelinePlace> cursor() const { return m_cursor; }
  const TimelineItem* currentItem() const { return m_cursor ? &itemAt(*m_cursor) : nullptr; }
  /// Track of the current box, or the first one.
  std::optional<std::size_t> currentTrack() const;
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
  /// While it is dragged.
  void previewArea(TimelineArea area) { m_area = std::move(area); }
  /// All rows, as long as what is in view.
  void takeView();
  /// Length of the selected time range, on one line; empty if there is none.
  QString measuredText() const;
  QSize sizeHint() const override;

 Q_SIGNALS:
  /// Not while it is still dragged.
  void areaChanged();
  void arrangementChanged();
  void tracksChanged();
  /// A box was gone to that may be scrolled out of sight.
  void revealed(const QRect& area);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void moveEvent(QMoveEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  const TimelineItem& itemAt(TimelinePlace place) const { return tracks().all()[place.track].items[place.item]; }
  void followSelection();
  void followScroll();
  void followStack();
  void dropHidden();

  Selection& m_selection;
  const Theme& m_theme;
  TimelineStack m_stack;
  TimelineZoom m_zoom;
  std::vector<TimelineLink> m_links;                   // of the first two tracks
  std::vector<std::vector<TimelineLink>> m_passLinks;  // by track, forward to backward
  std::vector<TimelinePlace> m_matches;
  std::vector<PlacedNote> m_notes;
  std::optional<TimelinePlace> m_cursor;
  std::optional<TimelineArea> m_area;
  TimelineHand* m_hand;
  TimelineKeys* m_keys;
};

}  // namespace fuseline::ui
