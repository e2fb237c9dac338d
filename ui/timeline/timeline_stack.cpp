// Lays tracks out as they are arranged.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_stack.h"

#include <algorithm>

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
    case TimelineLevel::Launch: return 20.0;
  }
  return 0.0;
}

int numRows(const TimelineTrack& track) { return static_cast<int>(track.rows.size()); }

void setContained(QStringList& names, const QString& name, bool isContained) {
  names.removeAll(name);
  if (isContained) names.append(name);
}

}  // namespace

void TimelineStack::setTracks(std::vector<TimelineTrack> tracks) {
  m_tracks = std::move(tracks);
  layOut();
}

void TimelineStack::setArrangement(TimelineArrangement arrangement) {
  m_arrangement = std::move(arrangement);
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

/// Named ones in their order, then the others; pinned ones of each before those that are not.
void TimelineStack::layOut() {
  m_order.clear();
  for (std::size_t track = 0; track < m_tracks.size(); ++track)
    if (isShown(track)) m_order.push_back(track);
  std::ranges::stable_sort(m_order, {}, [this](std::size_t track) {
    const qsizetype place = m_arrangement.order.indexOf(m_tracks[track].name);
    return std::pair(isPinned(track) ? 0 : 1, place < 0 ? m_arrangement.order.size() : place);
  });
  m_tops.assign(m_tracks.size(), 0.0);
  m_pinnedHeightPx = 0.0;
  m_heightPx = rulerHeight();
  for (const std::size_t track : m_order) {
    m_tops[track] = m_heightPx;
    m_heightPx += trackHeight(track);
    if (isPinned(track)) m_pinnedHeightPx += trackHeight(track);
  }
}

// -------------------------------------------------------------------------------------------------------- arrangement

/// A folded track shows only its steps, as a thin strip.
bool TimelineStack::isShown(std::size_t track, int row) const {
  if (!isShown(track)) return false;
  const TimelineRowKind kind = kindOf(m_tracks[track], row);
  return isFolded(track) ? kind == TimelineRowKind::Steps : !m_arrangement.hiddenRows.contains(kind);
}

int TimelineStack::numHiddenTracks() const { return static_cast<int>(m_tracks.size() - m_order.size()); }

std::set<TimelineRowKind> TimelineStack::hiddenRows() const {
  std::set<TimelineRowKind> kinds;
  for (const std::size_t track : m_order)
    for (int row = 0; row < numRows(m_tracks[track]); ++row)
      if (!isFolded(track) && !isShown(track, row)) kinds.insert(kindOf(m_tracks[track], row));
  return kinds;
}

bool TimelineStack::hasRows(TimelineRowKind kind) const {
  return std::ranges::any_of(m_tracks, [kind](const TimelineTrack& track) {
    for (int row = 0; row < numRows(track); ++row)
      if (kindOf(track, row) == kind) return true;
    return false;
  });
}

void TimelineStack::setFolded(std::size_t track, bool isFolded) {
  setContained(m_arrangement.folded, m_tracks[track].name, isFolded);
  layOut();
}

void TimelineStack::setPinned(std::size_t track, bool isPinned) {
  setContained(m_arrangement.pinned, m_tracks[track].name, isPinned);
  layOut();
}

void TimelineStack::setShown(std::size_t track, bool isShown) {
  setContained(m_arrangement.hidden, m_tracks[track].name, !isShown);
  layOut();
}

void TimelineStack::setRowsShown(TimelineRowKind kind, bool isShown) {
  isShown ? void(m_arrangement.hiddenRows.erase(kind)) : void(m_arrangement.hiddenRows.insert(kind));
  layOut();
}

/// Tracks of other runs that are hidden stay so.
void TimelineStack::showAll() {
  for (const TimelineTrack& track : m_tracks) m_arrangement.hidden.removeAll(track.name);
  m_arrangement.hiddenRows.clear();
  layOut();
}

bool TimelineStack::move(std::size_t track, int by) {
  const auto from = std::ranges::find(m_order, track) - m_order.begin();
  const auto to = from + by;
  if (by == 0 || from == std::ssize(m_order) || to < 0 || to >= std::ssize(m_order)) return false;
  if (isPinned(m_order[static_cast<std::size_t>(to)]) != isPinned(track)) return false;
  QStringList names;
  for (const std::size_t each : m_order) names.append(m_tracks[each].name);
  names.move(from, to);
  for (const QString& name : std::as_const(m_arrangement.order))
    if (!names.contains(name)) names.append(name);
  m_arrangement.order = names;
  layOut();
  return true;
}

// ----------------------------------------------------------------------------------------------------------- geometry

bool TimelineStack::sticks() const {
  return m_pinnedHeightPx > 0.0 && rulerHeight() + m_pinnedHeightPx <= kMostPinnedShare * m_viewHeightPx;
}

double TimelineStack::pinnedBottom() const { return tracksTop() + (sticks() ? m_pinnedHeightPx : 0.0); }

double TimelineStack::top(std::size_t track) const { return m_tops[track] + (sticks(track) ? m_scrolledPx : 0.0); }

double TimelineStack::trackHeight(std::size_t track) const {
  double height = kHeadHeightPx + kTrackGapPx;
  for (int row = 0; row < numRows(m_tracks[track]); ++row)
    if (isShown(track, row)) height += rowHeight(track, row);
  return height;
}

double TimelineStack::rowHeight(std::size_t track, int row) const {
  return isFolded(track) ? kFoldedRowPx : rowHeightOf(m_tracks[track].rows[static_cast<std::size_t>(row)]);
}

double TimelineStack::rowTop(std::size_t track, int row) const {
  double top = this->top(track) + kHeadHeightPx;
  for (int i = 0; i < row; ++i)
    if (isShown(track, i)) top += rowHeight(track, i);
  return top;
}

std::vector<std::pair<std::size_t, int>> TimelineStack::rows() const {
  std::vector<std::pair<std::size_t, int>> rows;
  for (const std::size_t track : m_order)
    for (int row = 0; row < numRows(m_tracks[track]); ++row)
      if (isShown(track, row)) rows.emplace_back(track, row);
  return rows;
}

std::optional<std::size_t> TimelineStack::trackAt(double y) const {
  if (y < tracksTop()) return std::nullopt;
  for (const std::size_t track : m_order) {
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
  for (const std::size_t other : m_order) {
    if (other == track) isBelow = true;
    if (other == track || isPinned(other) != isPinned(track)) continue;
    const double middle = top(other) + trackHeight(other) / 2;
    if (isBelow && y > middle) ++places;
    if (!isBelow && y < middle) --places;
  }
  return places;
}

QRectF TimelineStack::areaOf(std::size_t track, const TimelineCell& cell) const {
  const int row = m_tracks[track].items[cell.first].row;
  return {cell.left, rowTop(track, row) + kBoxGapPx / 2, cell.right - cell.left, rowHeight(track, row) - kBoxGapPx};
}

std::vector<QRectF> TimelineStack::areasOf(std::size_t track, const TimelineRange& range, double widthPx) const {
  std::vector<QRectF> areas(m_tracks[track].items.size());
  for (const TimelineCell& cell : cellsInView(m_tracks[track], range, widthPx)) {
    if (!isShown(track, m_tracks[track].items[cell.first].row)) continue;
    std::fill(areas.begin() + static_cast<std::ptrdiff_t>(cell.first),
              areas.begin() + static_cast<std::ptrdiff_t>(cell.last) + 1, areaOf(track, cell));
  }
  return areas;
}

}  // namespace fuseline::ui
