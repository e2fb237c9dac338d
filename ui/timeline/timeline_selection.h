// Boxes of the selected ops, and whether they are in view.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/timeline_area.h"
#include "ui/timeline/timeline_range.h"
#include "ui/timeline/timeline_walk.h"

#include <QSet>
#include <QString>

#include <optional>

namespace fuseline::ui {

bool isSelected(const TimelineItem& item, const QSet<QString>& selection);
/// In the order of rows; nothing: no box is of the selection.
std::optional<TimelinePlace> firstSelected(const ArrangedTracks& tracks, const QSet<QString>& selection);
/// The same; nothing where a box of the selection is in the range already.
std::optional<TimelinePlace> hiddenSelection(const ArrangedTracks& tracks, const TimelineRange& range,
                                             const QSet<QString>& selection);
/// Whether all rows of the area are shown.
bool fits(const ArrangedTracks& tracks, const TimelineArea& area);

}  // namespace fuseline::ui
