// Walks boxes and rows.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_walk.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

const TimelineItem& itemAt(const TimelineStack& stack, TimelinePlace place) {
  return stack.tracks()[place.track].items[place.item];
}

std::optional<TimelinePlace> besideInRow(const TimelineStack& stack, TimelinePlace from, int by) {
  const auto& items = stack.tracks()[from.track].items;
  const std::size_t next = from.item + static_cast<std::size_t>(by);  // wraps below 0, where there is no item
  if (next >= items.size() || items[next].row != items[from.item].row) return std::nullopt;
  return TimelinePlace{from.track, next};
}

std::optional<TimelinePlace> nearestInRow(const TimelineStack& stack, std::size_t track, int row, double timeNs) {
  const auto& items = stack.tracks()[track].items;
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

std::optional<TimelinePlace> inNextRow(const TimelineStack& stack, TimelinePlace from, int by) {
  const auto rows = stack.rows();
  const TimelineItem& item = itemAt(stack, from);
  const double middleNs = (item.startNs + item.endNs) / 2;
  const auto here = std::ranges::find(rows, std::pair(from.track, item.row));
  for (auto index = here - rows.begin() + by; index >= 0 && index < std::ssize(rows); index += by) {
    const auto [track, row] = rows[static_cast<std::size_t>(index)];
    if (const auto nearest = nearestInRow(stack, track, row, middleNs)) return nearest;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TimelinePlace> firstStep(const TimelineStack& stack) {
  for (const auto& [track, row] : stack.rows()) {
    const auto& items = stack.tracks()[track].items;
    const auto step = std::ranges::find_if(
        items, [row = row](const TimelineItem& item) { return item.level == TimelineLevel::Step && item.row == row; });
    if (step != items.end()) return TimelinePlace{track, static_cast<std::size_t>(step - items.begin())};
  }
  return std::nullopt;
}

std::optional<TimelinePlace> neighbourOf(const TimelineStack& stack, TimelinePlace from, TimelineMove move) {
  switch (move) {
    case TimelineMove::Before: return besideInRow(stack, from, -1);
    case TimelineMove::Behind: return besideInRow(stack, from, 1);
    case TimelineMove::Above: return inNextRow(stack, from, -1);
    case TimelineMove::Below: return inNextRow(stack, from, 1);
  }
  return std::nullopt;
}

}  // namespace fuseline::ui
