// TimelineStack: where the tracks and rows of a timeline are, one above the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/models/timeline_tracks.h"

#include <QRectF>

#include <cstddef>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// In pixels, from the top of the ruler on.
class TimelineStack {
 public:
  static constexpr double kRulerHeightPx = 22.0;
  static constexpr double kHeadHeightPx = 22.0;

  void setTracks(std::vector<TimelineTrack> tracks) { m_tracks = std::move(tracks); }
  const std::vector<TimelineTrack>& tracks() const { return m_tracks; }
  bool isEmpty() const { return m_tracks.empty(); }

  double heightPx() const { return top(m_tracks.size()); }
  /// Of a track's head; of the number of tracks, where the last one ends.
  double top(std::size_t track) const;
  double rowTop(std::size_t track, int row) const;
  double rowHeight(std::size_t track, int row) const;
  /// From top to bottom, as (track, row).
  std::vector<std::pair<std::size_t, int>> rows() const;
  QRectF areaOf(std::size_t track, const TimelineCell& cell) const;
  /// By item of the track; null for what is not in view.
  std::vector<QRectF> areasOf(std::size_t track, const TimelineRange& range, double widthPx) const;

 private:
  std::vector<TimelineTrack> m_tracks;
};

}  // namespace fuseline::ui
