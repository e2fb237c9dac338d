// Looks through the rows that are shown.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_selection.h"

#include <algorithm>

namespace fuseline::ui {

bool isSelected(const TimelineItem& item, const QSet<QString>& selection) {
  return std::ranges::any_of(item.owners, [&](const QString& id) { return selection.contains(id); });
}

namespace {

template <class Wanted>
std::optional<TimelinePlace> firstOf(const ArrangedTracks& tracks, const QSet<QString>& selection, Wanted isWanted) {
  for (const auto& [track, row] : tracks.rows()) {
    const auto& items = tracks.all()[track].items;
    for (std::size_t item = 0; item < items.size(); ++item)
      if (items[item].row == row && isWanted(items[item]) && isSelected(items[item], selection))
        return TimelinePlace{track, item};
  }
  return std::nullopt;
}

}  // namespace

std::optional<TimelinePlace> firstSelected(const ArrangedTracks& tracks, const QSet<QString>& selection) {
  return firstOf(tracks, selection, [](const TimelineItem&) { return true; });
}

std::optional<TimelinePlace> hiddenSelection(const ArrangedTracks& tracks, const TimelineRange& range,
                                             const QSet<QString>& selection) {
  const auto isInView = [&](const TimelineItem& item) {
    return item.endNs >= range.startNs() && item.startNs <= range.endNs();
  };
  return firstOf(tracks, selection, isInView) ? std::nullopt : firstSelected(tracks, selection);
}

bool fits(const ArrangedTracks& tracks, const TimelineArea& area) {
  const auto rows = tracks.rows();
  return std::ranges::all_of(area.rows, [&](const auto& row) { return std::ranges::find(rows, row) != rows.end(); });
}

}  // namespace fuseline::ui
