// Lays tracks out as they are arranged.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_stack.h"

#include <algorithm>
#include <iterator>

namespace fuseline::ui {

namespace {

constexpr double kTrackGapPx = 8.0;
constexpr double kBoxGapPx = 2.0;
constexpr double kFoldedRowPx = 10.0;
/// Maximum share of the visible height for pinned tracks and the ruler.
constexpr double kMostPinnedShare = 2.0 / 3.0;

double rowHeightOf(TimelineLevel level) {
  switch (level) {
    case TimelineLevel::Pass: return 18.0;
    case TimelineLevel::Step: return 26.0;
    case TimelineLevel::Activity:
    case TimelineLevel::RankStep:
    case TimelineLevel::Launch: return 20.0;
  }
  return 0.0;
}

}  // namespace

void TimelineStack::arrange(const std::function<void(ArrangedTracks&)>& change) {
  change(m_tracks);
  layOut();
}

void TimelineStack::setNoteLanes(int count) {
  m_numNoteLanes = count;
  layOut();
}

void TimelineStack::setScroll(double topPx, double heightPx) {
  m_scrolledPx = topPx;
  m_viewHeightPx = heightPx;
}

void TimelineStack::layOut() {
  m_tops.assign(m_tracks.all().size(), 0.0);
  m_pinnedHeightPx = 0.0;
  m_heightPx = rulerHeight();
  for (const std::size_t track : m_tracks.order()) {
    m_tops[track] = m_heightPx;
    m_heightPx += trackHeight(track);
    if (m_tracks.isPinned(track)) m_pinnedHeightPx += trackHeight(track);
  }
}

bool TimelineStack::sticks() const {
  return m_pinnedHeightPx > 0.0 && rulerHeight() + m_pinnedHeightPx <= kMostPinnedShare * m_viewHeightPx;
}

double TimelineStack::pinnedBottom() const { return tracksTop() + (sticks() ? m_pinnedHeightPx : 0.0); }

double TimelineStack::top(std::size_t track) const { return m_tops[track] + (sticks(track) ? m_scrolledPx : 0.0); }

double TimelineStack::trackHeight(std::size_t track) const {
  double height = kHeadHeightPx + kTrackGapPx;
  for (int row = 0; row < std::ssize(m_tracks.all()[track].rows); ++row)
    if (m_tracks.isShown(track, row)) height += rowHeight(track, row);
  return height;
}

double TimelineStack::rowHeight(std::size_t track, int row) const {
  return m_tracks.isFolded(track) ? kFoldedRowPx
                                  : rowHeightOf(m_tracks.all()[track].rows[static_cast<std::size_t>(row)]);
}

double TimelineStack::rowTop(std::size_t track, int row) const {
  double top = this->top(track) + kHeadHeightPx;
  for (int i = 0; i < row; ++i)
    if (m_tracks.isShown(track, i)) top += rowHeight(track, i);
  return top;
}

std::optional<std::size_t> TimelineStack::trackAt(double y) const {
  if (y < tracksTop()) return std::nullopt;
  for (const std::size_t track : m_tracks.order()) {
    if (y >= top(track) && y < top(track) + trackHeight(track)) return track;  // pinned ones, which cover, come first
  }
  return std::nullopt;
}

bool TimelineStack::isInHead(std::size_t track, double y) const {
  return trackAt(y) == track && y < top(track) + kHeadHeightPx;
}

QRectF TimelineStack::foldArea(std::size_t track) const { return {2, top(track), 20, kHeadHeightPx}; }

QRectF TimelineStack::pinArea(std::size_t track, double widthPx) const {
  return {widthPx - 28, top(track), 24, kHeadHeightPx};
}

/// Past the middle of others, which are pinned as it is.
int TimelineStack::placesTo(std::size_t track, double y) const {
  int places = 0;
  bool isBelow = false;
  for (const std::size_t other : m_tracks.order()) {
    if (other == track) isBelow = true;
    if (other == track || m_tracks.isPinned(other) != m_tracks.isPinned(track)) continue;
    const double middle = top(other) + trackHeight(other) / 2;
    if (isBelow && y > middle) ++places;
    if (!isBelow && y < middle) --places;
  }
  return places;
}

QRectF TimelineStack::areaOf(std::size_t track, const TimelineCell& cell) const {
  const int row = m_tracks.all()[track].items[cell.first].row;
  return {cell.left, rowTop(track, row) + kBoxGapPx / 2, cell.right - cell.left, rowHeight(track, row) - kBoxGapPx};
}

std::vector<QRectF> TimelineStack::areasOf(std::size_t track, const TimelineRange& range, double widthPx) const {
  std::vector<QRectF> areas(m_tracks.all()[track].items.size());
  for (const TimelineCell& cell : cellsInView(m_tracks.all()[track], range, widthPx)) {
    if (!m_tracks.isShown(track, m_tracks.all()[track].items[cell.first].row)) continue;
    std::fill(areas.begin() + static_cast<std::ptrdiff_t>(cell.first),
              areas.begin() + static_cast<std::ptrdiff_t>(cell.last) + 1, areaOf(track, cell));
  }
  return areas;
}

}  // namespace fuseline::ui
