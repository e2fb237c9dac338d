// TimelinePainter: one picture of a timeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/models/timeline_area.h"
#include "ui/models/timeline_range.h"
#include "ui/models/timeline_stack.h"
#include "ui/models/timeline_walk.h"
#include "ui/theme/theme.h"

#include <QPainter>
#include <QSet>
#include <QSizeF>
#include <QString>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// What there is to paint.
struct TimelinePicture {
  const TimelineStack& stack;
  const TimelineRange& range;
  const std::vector<std::pair<std::size_t, std::size_t>>& links;  // of the first two tracks
  const QSet<QString>& selection;
  std::optional<TimelinePlace> cursor;  // of the keyboard, where it is here
  const std::optional<TimelineArea>& area;
  QString areaText;
};

class TimelinePainter {
 public:
  TimelinePainter(QPainter& painter, const TimelinePicture& picture, QSizeF size, const Theme& theme);
  void paint();

 private:
  void paintRuler();
  void paintTrack(std::size_t track);
  void paintCell(std::size_t track, const TimelineCell& cell);
  void paintLabel(const QRectF& area, const TimelineItem& item, const QColor& ground);
  void paintLinks();
  void paintArea();
  void paintAreaText(double left, double right);
  QColor fillOf(const TimelineItem& item) const;
  bool isSelected(const TimelineItem& item) const;
  const std::vector<TimelineTrack>& tracks() const { return m_picture.stack.tracks(); }

  QPainter& m_painter;
  const TimelinePicture& m_picture;
  double m_width;
  double m_height;
  const Theme& m_theme;
};

}  // namespace fuseline::ui
