// Looks through the rows that are shown.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_selection.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

template <class Wanted>
std::optional<TimelinePlace> firstOf(const TimelineStack& stack, const QSet<QString>& selection, Wanted isWanted) {
  const auto isSelected = [&](const TimelineItem& item) {
    return std::ranges::any_of(item.owners, [&](const QString& id) { return selection.contains(id); });
  };
  for (const auto& [track, row] : stack.rows()) {
    const auto& items = stack.tracks()[track].items;
    for (std::size_t item = 0; item < items.size(); ++item)
      if (items[item].row == row && isWanted(items[item]) && isSelected(items[item])) return TimelinePlace{track, item};
  }
  return std::nullopt;
}

}  // namespace

std::optional<TimelinePlace> firstSelected(const TimelineStack& stack, const QSet<QString>& selection) {
  return firstOf(stack, selection, [](const TimelineItem&) { return true; });
}

std::optional<TimelinePlace> hiddenSelection(const TimelineStack& stack, const TimelineRange& range,
                                             const QSet<QString>& selection) {
  const auto isInView = [&](const TimelineItem& item) {
    return item.endNs >= range.startNs() && item.startNs <= range.endNs();
  };
  return firstOf(stack, selection, isInView) ? std::nullopt : firstSelected(stack, selection);
}

bool fits(const TimelineStack& stack, const TimelineArea& area) {
  const auto rows = stack.rows();
  return std::ranges::all_of(area.rows, [&](const auto& row) { return std::ranges::find(rows, row) != rows.end(); });
}

}  // namespace fuseline::ui
