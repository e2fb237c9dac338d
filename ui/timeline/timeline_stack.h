// TimelineStack: which tracks and rows of a timeline are shown, and where they are, one above the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/timeline_arrangement.h"
#include "ui/timeline/timeline_tracks.h"

#include <QRectF>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// In pixels of the whole timeline, of which a part may be in view. The ruler and pinned tracks stay at the top of that
/// part; where pinned tracks would leave too little room for others, they scroll as these do.
class TimelineStack {
 public:
  static constexpr double kRulerHeightPx = 22.0;
  static constexpr double kHeadHeightPx = 22.0;
  static constexpr double kNoteHeightPx = 18.0;

  void setTracks(std::vector<TimelineTrack> tracks);
  const std::vector<TimelineTrack>& tracks() const { return m_tracks; }
  bool isEmpty() const { return m_tracks.empty(); }

  const TimelineArrangement& arrangement() const { return m_arrangement; }
  void setArrangement(TimelineArrangement arrangement);
  /// Below the ruler, for notes.
  void setNoteLanes(int count);
  /// Sets the visible part of the timeline.
  void setScroll(double topPx, double heightPx);

  /// Shown tracks, from top to bottom.
  const std::vector<std::size_t>& order() const { return m_order; }
  bool isFolded(std::size_t track) const { return m_arrangement.folded.contains(m_tracks[track].name); }
  bool isPinned(std::size_t track) const { return m_arrangement.pinned.contains(m_tracks[track].name); }
  /// Whether it is pinned, and there is room for it to stay.
  bool sticks(std::size_t track) const { return isPinned(track) && sticks(); }
  bool isShown(std::size_t track) const { return !m_arrangement.hidden.contains(m_tracks[track].name); }
  bool isShown(std::size_t track, int row) const;
  int numHiddenTracks() const;
  /// Hidden kinds of rows that a shown, unfolded track has.
  std::set<TimelineRowKind> hiddenRows() const;
  /// Whether any track has rows of this kind.
  bool hasRows(TimelineRowKind kind) const;

  // Arrangement.
  void setFolded(std::size_t track, bool isFolded);
  void setPinned(std::size_t track, bool isPinned);
  void setShown(std::size_t track, bool isShown);
  void setRowsShown(TimelineRowKind kind, bool isShown);
  void showAll();
  /// Moves the track by this number of places among the shown pinned, or unpinned, tracks. False: it cannot move there.
  bool move(std::size_t track, int by);

  double heightPx() const { return m_heightPx; }
  double rulerTop() const { return m_scrolledPx; }
  double noteTop(int lane) const { return m_scrolledPx + kRulerHeightPx + lane * kNoteHeightPx; }
  /// Below the ruler and the notes, which nothing covers.
  double tracksTop() const { return m_scrolledPx + rulerHeight(); }
  /// Where tracks begin that scroll: above it they are covered.
  double pinnedBottom() const;
  /// Top of the header of a shown track.
  double top(std::size_t track) const;
  double trackHeight(std::size_t track) const;
  /// Top of a shown row.
  double rowTop(std::size_t track, int row) const;
  double rowHeight(std::size_t track, int row) const;
  /// Shown rows from top to bottom, as (track, row).
  std::vector<std::pair<std::size_t, int>> rows() const;
  /// The shown track at this height, its head included; of the gap below it, too.
  std::optional<std::size_t> trackAt(double y) const;
  bool isInHead(std::size_t track, double y) const;
  /// In a head: its triangle, and its pin.
  QRectF foldArea(std::size_t track) const;
  QRectF pinArea(std::size_t track, double widthPx) const;
  /// As for move(): where a track belongs whose head is dragged to this height.
  int placesTo(std::size_t track, double y) const;

  /// Area of a cell in a shown row.
  QRectF areaOf(std::size_t track, const TimelineCell& cell) const;
  /// By item of the track; null for what is not shown.
  std::vector<QRectF> areasOf(std::size_t track, const TimelineRange& range, double widthPx) const;

 private:
  bool sticks() const;
  /// With the notes.
  double rulerHeight() const { return kRulerHeightPx + m_numNoteLanes * kNoteHeightPx; }
  void layOut();

  std::vector<TimelineTrack> m_tracks;
  TimelineArrangement m_arrangement;
  std::vector<std::size_t> m_order;
  std::vector<double> m_tops;  // by track, where nothing is scrolled
  int m_numNoteLanes = 0;
  double m_pinnedHeightPx = 0.0;
  double m_heightPx = kRulerHeightPx;
  double m_scrolledPx = 0.0;
  double m_viewHeightPx = 0.0;
};

}  // namespace fuseline::ui
