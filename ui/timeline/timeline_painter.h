// TimelinePainter: one picture of a timeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/timeline_area.h"
#include "ui/timeline/timeline_links.h"
#include "ui/timeline/timeline_notes.h"
#include "ui/timeline/timeline_range.h"
#include "ui/timeline/timeline_stack.h"
#include "ui/timeline/timeline_walk.h"

#include <QPainter>
#include <QSet>
#include <QSizeF>
#include <QString>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// Contents to paint.
struct TimelinePicture {
  const TimelineStack& stack;
  const TimelineRange& range;
  const std::vector<TimelineLink>& links;                   // of the first two tracks
  const std::vector<std::vector<TimelineLink>>& passLinks;  // by track, forward to backward
  const std::vector<TimelinePlace>& matches;                // of a search, in ascending order
  const QSet<QString>& selection;
  std::optional<TimelinePlace> cursor;  // of the keyboard, where it is here
  const std::vector<PlacedNote>& notes;
  const std::optional<TimelineArea>& area;
  QString areaText;
  std::optional<double> dropY = {};  // where a dragged track would go
};

/// The label of a note, in its lane: at least so wide that it can be met.
QRectF noteArea(const TimelineStack& stack, const TimelineRange& range, double widthPx, const PlacedNote& placed);

class TimelinePainter {
 public:
  TimelinePainter(QPainter& painter, const TimelinePicture& picture, QSizeF size, const Theme& theme);
  void paint();

 private:
  void paintGrid();
  void paintRuler();
  void paintTracks(bool areSticking);
  void paintTrack(std::size_t track);
  void paintHead(std::size_t track);
  void paintTriangle(std::size_t track);
  void paintPin(std::size_t track);
  void paintCell(std::size_t track, const TimelineCell& cell);
  void paintWait(const QRectF& area, const TimelineItem& item);
  void paintRankNames(std::size_t track);
  void paintNarrow(std::size_t track, const TimelineCell& cell);
  void paintLabel(const QRectF& area, const TimelineItem& item, const QColor& ground);
  void paintMatch(const QRectF& area);
  void paintLinks();
  void paintPassLinks(std::size_t track);
  void paintCurve(const QRectF& from, const QRectF& to, double lift);
  QRectF boxOf(std::size_t track, const TimelineItem& item) const;
  bool isMatch(std::size_t track, const TimelineCell& cell) const;
  void paintNotes();
  void paintNoteBand(const StretchNote& note, const QRectF& label);
  double roomBehind(const PlacedNote& placed) const;
  void paintArea();
  void paintAreaText(double left, double right);
  QColor fillOf(const TimelineItem& item) const;
  bool isSelected(const TimelineItem& item) const;
  const std::vector<TimelineTrack>& tracks() const { return m_picture.stack.tracks().all(); }

  QPainter& m_painter;
  const TimelinePicture& m_picture;
  double m_width;
  double m_height;
  const Theme& m_theme;
};

}  // namespace fuseline::ui
