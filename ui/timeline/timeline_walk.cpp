// Walks boxes and rows.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_walk.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

const TimelineItem& itemAt(const ArrangedTracks& tracks, TimelinePlace place) {
  return tracks.all()[place.track].items[place.item];
}

std::optional<TimelinePlace> besideInRow(const ArrangedTracks& tracks, TimelinePlace from, int by) {
  const auto& items = tracks.all()[from.track].items;
  const std::size_t next = from.item + static_cast<std::size_t>(by);  // wraps below 0, where there is no item
  if (next >= items.size() || items[next].row != items[from.item].row) return std::nullopt;
  return TimelinePlace{from.track, next};
}

std::optional<TimelinePlace> nearestInRow(const ArrangedTracks& tracks, std::size_t track, int row, double timeNs) {
  const auto& items = tracks.all()[track].items;
  std::optional<TimelinePlace> nearest;
  double least = 0.0;
  for (std::size_t item = 0; item < items.size(); ++item) {
    if (items[item].row != row) continue;
    const double apart = std::max({items[item].startNs - timeNs, timeNs - items[item].endNs, 0.0});
    if (nearest && apart >= least) continue;
    nearest = TimelinePlace{track, item};
    least = apart;
  }
  return nearest;
}

std::optional<TimelinePlace> inNextRow(const ArrangedTracks& tracks, TimelinePlace from, int by) {
  const auto rows = tracks.rows();
  const TimelineItem& item = itemAt(tracks, from);
  const double middleNs = (item.startNs + item.endNs) / 2;
  const auto here = std::ranges::find(rows, std::pair(from.track, item.row));
  for (auto index = here - rows.begin() + by; index >= 0 && index < std::ssize(rows); index += by) {
    const auto [track, row] = rows[static_cast<std::size_t>(index)];
    if (const auto nearest = nearestInRow(tracks, track, row, middleNs)) return nearest;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TimelinePlace> firstStep(const ArrangedTracks& tracks) {
  for (const auto& [track, row] : tracks.rows()) {
    const auto& items = tracks.all()[track].items;
    const auto step = std::ranges::find_if(
        items, [row = row](const TimelineItem& item) { return item.level == TimelineLevel::Step && item.row == row; });
    if (step != items.end()) return TimelinePlace{track, static_cast<std::size_t>(step - items.begin())};
  }
  return std::nullopt;
}

std::optional<TimelinePlace> neighbourOf(const ArrangedTracks& tracks, TimelinePlace from, TimelineMove move) {
  switch (move) {
    case TimelineMove::Before: return besideInRow(tracks, from, -1);
    case TimelineMove::Behind: return besideInRow(tracks, from, 1);
    case TimelineMove::Above: return inNextRow(tracks, from, -1);
    case TimelineMove::Below: return inNextRow(tracks, from, 1);
  }
  return std::nullopt;
}

}  // namespace fuseline::ui
