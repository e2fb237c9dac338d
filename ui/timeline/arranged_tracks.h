// ArrangedTracks: the tracks of a timeline, and which of them and of their rows are shown, in which order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/timeline_arrangement.h"
#include "ui/timeline/timeline_tracks.h"

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace fuseline::ui {

class ArrangedTracks {
 public:
  void setTracks(std::vector<TimelineTrack> tracks);
  const std::vector<TimelineTrack>& all() const { return m_tracks; }
  bool isEmpty() const { return m_tracks.empty(); }
  const TimelineArrangement& arrangement() const { return m_arrangement; }
  void setArrangement(TimelineArrangement arrangement);

  /// Shown tracks, from top to bottom.
  const std::vector<std::size_t>& order() const { return m_order; }
  bool isFolded(std::size_t track) const { return m_arrangement.folded.contains(m_tracks[track].name); }
  bool isPinned(std::size_t track) const { return m_arrangement.pinned.contains(m_tracks[track].name); }
  bool isShown(std::size_t track) const { return !m_arrangement.hidden.contains(m_tracks[track].name); }
  bool isShown(std::size_t track, int row) const;
  /// Shown rows from top to bottom, as (track, row).
  std::vector<std::pair<std::size_t, int>> rows() const;
  int numHiddenTracks() const;
  /// Hidden kinds of rows that a shown, unfolded track has.
  std::set<TimelineRowKind> hiddenRows() const;
  /// Whether any track has rows of this kind.
  bool hasRows(TimelineRowKind kind) const;

  void setFolded(std::size_t track, bool isFolded);
  void setPinned(std::size_t track, bool isPinned);
  void setShown(std::size_t track, bool isShown);
  void setRowsShown(TimelineRowKind kind, bool isShown);
  void showAll();
  /// Moves the track by this number of places among the shown pinned, or unpinned, tracks. False: it cannot move there.
  bool move(std::size_t track, int by);

 private:
  void sort();

  std::vector<TimelineTrack> m_tracks;
  TimelineArrangement m_arrangement;
  std::vector<std::size_t> m_order;
};

}  // namespace fuseline::ui
