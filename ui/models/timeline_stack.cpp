// Adds up heights.
// SPDX-License-Identifier: Apache-2.0
#include "ui/models/timeline_stack.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr double kTrackGapPx = 8.0;
constexpr double kBoxGapPx = 2.0;

double rowHeightOf(TimelineLevel level) {
  switch (level) {
    case TimelineLevel::Pass: return 18.0;
    case TimelineLevel::Step: return 26.0;
    case TimelineLevel::Activity:
    case TimelineLevel::Launch: return 20.0;
  }
  return 0.0;
}

double heightOf(const TimelineTrack& track) {
  double height = TimelineStack::kHeadHeightPx;
  for (const TimelineLevel level : track.rows) height += rowHeightOf(level);
  return height + kTrackGapPx;
}

}  // namespace

double TimelineStack::top(std::size_t track) const {
  double top = kRulerHeightPx;
  for (std::size_t i = 0; i < track; ++i) top += heightOf(m_tracks[i]);
  return top;
}

double TimelineStack::rowHeight(std::size_t track, int row) const {
  return rowHeightOf(m_tracks[track].rows[static_cast<std::size_t>(row)]);
}

double TimelineStack::rowTop(std::size_t track, int row) const {
  double top = this->top(track) + kHeadHeightPx;
  for (int i = 0; i < row; ++i) top += rowHeight(track, i);
  return top;
}

std::vector<std::pair<std::size_t, int>> TimelineStack::rows() const {
  std::vector<std::pair<std::size_t, int>> rows;
  for (std::size_t track = 0; track < m_tracks.size(); ++track)
    for (int row = 0; row < static_cast<int>(m_tracks[track].rows.size()); ++row) rows.emplace_back(track, row);
  return rows;
}

QRectF TimelineStack::areaOf(std::size_t track, const TimelineCell& cell) const {
  const int row = m_tracks[track].items[cell.first].row;
  return {cell.left, rowTop(track, row) + kBoxGapPx / 2, cell.right - cell.left, rowHeight(track, row) - kBoxGapPx};
}

std::vector<QRectF> TimelineStack::areasOf(std::size_t track, const TimelineRange& range, double widthPx) const {
  std::vector<QRectF> areas(m_tracks[track].items.size());
  for (const TimelineCell& cell : cellsInView(m_tracks[track], range, widthPx))
    std::fill(areas.begin() + static_cast<std::ptrdiff_t>(cell.first),
              areas.begin() + static_cast<std::ptrdiff_t>(cell.last) + 1, areaOf(track, cell));
  return areas;
}

}  // namespace fuseline::ui
