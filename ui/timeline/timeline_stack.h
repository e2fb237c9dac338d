// TimelineStack: where the shown tracks and rows of a timeline are, one above the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/arranged_tracks.h"

#include <QRectF>

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace fuseline::ui {

/// In pixels of the whole timeline, of which a part may be in view. The ruler and pinned tracks stay at the top of that
/// part; where pinned tracks would leave too little room for others, they scroll as these do.
class TimelineStack {
 public:
  static constexpr double kRulerHeightPx = 22.0;
  static constexpr double kHeadHeightPx = 22.0;
  static constexpr double kNoteHeightPx = 18.0;

  const ArrangedTracks& tracks() const { return m_tracks; }
  /// Sets, folds, pins, moves or hides tracks or rows.
  void arrange(const std::function<void(ArrangedTracks&)>& change);
  /// Below the ruler, for notes.
  void setNoteLanes(int count);
  /// Sets the visible part of the timeline.
  void setScroll(double topPx, double heightPx);
  /// Whether the track is pinned, and there is room for it to stay.
  bool sticks(std::size_t track) const { return m_tracks.isPinned(track) && sticks(); }

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
  /// The shown track at this height, its head included; of the gap below it, too.
  std::optional<std::size_t> trackAt(double y) const;
  bool isInHead(std::size_t track, double y) const;
  /// In a head: its triangle, and its pin.
  QRectF foldArea(std::size_t track) const;
  QRectF pinArea(std::size_t track, double widthPx) const;
  /// As for ArrangedTracks::move(): where a track belongs whose head is dragged to this height.
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

  ArrangedTracks m_tracks;
  std::vector<double> m_tops;  // by track, where nothing is scrolled
  int m_numNoteLanes = 0;
  double m_pinnedHeightPx = 0.0;
  double m_heightPx = kRulerHeightPx;
  double m_scrolledPx = 0.0;
  double m_viewHeightPx = 0.0;
};

}  // namespace fuseline::ui
