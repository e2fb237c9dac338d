// TimelineHits: which box, note or header of a timeline is at a position.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/timeline_notes.h"
#include "ui/timeline/timeline_range.h"
#include "ui/timeline/timeline_stack.h"

#include <QPointF>
#include <QString>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// In a widget of this width.
struct TimelineHits {
  const TimelineStack& stack;
  const TimelineRange& range;
  const std::vector<PlacedNote>& notes;
  double widthPx = 0.0;

  /// A box, or several that are too short to be told apart, and its track.
  std::optional<std::pair<std::size_t, TimelineCell>> cellAt(QPointF position) const;
  const PlacedNote* noteAt(QPointF position) const;
  /// The track whose header it is.
  std::optional<std::size_t> headAt(QPointF position) const;
  /// A sentence or more; empty: nothing is there.
  QString tipAt(QPointF position) const;
};

}  // namespace fuseline::ui
