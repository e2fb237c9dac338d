// Keeps the order that the arrangement names.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/arranged_tracks.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

int numRows(const TimelineTrack& track) { return static_cast<int>(track.rows.size()); }

void setContained(QStringList& names, const QString& name, bool isContained) {
  names.removeAll(name);
  if (isContained) names.append(name);
}

}  // namespace

void ArrangedTracks::setTracks(std::vector<TimelineTrack> tracks) {
  m_tracks = std::move(tracks);
  sort();
}

void ArrangedTracks::setArrangement(TimelineArrangement arrangement) {
  m_arrangement = std::move(arrangement);
  sort();
}

/// Named ones in their order, then the others; pinned ones of each before those that are not.
void ArrangedTracks::sort() {
  m_order.clear();
  for (std::size_t track = 0; track < m_tracks.size(); ++track)
    if (isShown(track)) m_order.push_back(track);
  std::ranges::stable_sort(m_order, {}, [this](std::size_t track) {
    const qsizetype place = m_arrangement.order.indexOf(m_tracks[track].name);
    return std::pair(isPinned(track) ? 0 : 1, place < 0 ? m_arrangement.order.size() : place);
  });
}

std::vector<std::pair<std::size_t, int>> ArrangedTracks::rows() const {
  std::vector<std::pair<std::size_t, int>> rows;
  for (const std::size_t track : m_order)
    for (int row = 0; row < numRows(m_tracks[track]); ++row)
      if (isShown(track, row)) rows.emplace_back(track, row);
  return rows;
}

/// A folded track shows only its steps, as a thin strip.
bool ArrangedTracks::isShown(std::size_t track, int row) const {
  if (!isShown(track)) return false;
  const TimelineRowKind kind = kindOf(m_tracks[track], row);
  return isFolded(track) ? kind == TimelineRowKind::Steps : !m_arrangement.hiddenRows.contains(kind);
}

int ArrangedTracks::numHiddenTracks() const { return static_cast<int>(m_tracks.size() - m_order.size()); }

std::set<TimelineRowKind> ArrangedTracks::hiddenRows() const {
  std::set<TimelineRowKind> kinds;
  for (const std::size_t track : m_order)
    for (int row = 0; row < numRows(m_tracks[track]); ++row)
      if (!isFolded(track) && !isShown(track, row)) kinds.insert(kindOf(m_tracks[track], row));
  return kinds;
}

bool ArrangedTracks::hasRows(TimelineRowKind kind) const {
  return std::ranges::any_of(m_tracks, [kind](const TimelineTrack& track) {
    for (int row = 0; row < numRows(track); ++row)
      if (kindOf(track, row) == kind) return true;
    return false;
  });
}

void ArrangedTracks::setFolded(std::size_t track, bool isFolded) {
  setContained(m_arrangement.folded, m_tracks[track].name, isFolded);
  sort();
}

void ArrangedTracks::setPinned(std::size_t track, bool isPinned) {
  setContained(m_arrangement.pinned, m_tracks[track].name, isPinned);
  sort();
}

void ArrangedTracks::setShown(std::size_t track, bool isShown) {
  setContained(m_arrangement.hidden, m_tracks[track].name, !isShown);
  sort();
}

void ArrangedTracks::setRowsShown(TimelineRowKind kind, bool isShown) {
  isShown ? void(m_arrangement.hiddenRows.erase(kind)) : void(m_arrangement.hiddenRows.insert(kind));
  sort();
}

/// Tracks of other runs that are hidden stay so.
void ArrangedTracks::showAll() {
  for (const TimelineTrack& track : m_tracks) m_arrangement.hidden.removeAll(track.name);
  m_arrangement.hiddenRows.clear();
  sort();
}

bool ArrangedTracks::move(std::size_t track, int by) {
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
  sort();
  return true;
}

}  // namespace fuseline::ui
