// TimelineArea: a time range over some rows of a timeline, and its sums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/timeline_stack.h"

#include <QString>
#include <QStringList>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fuseline::ui {

struct TimelineArea {
  double startNs = 0.0;
  double endNs = 0.0;
  std::vector<std::pair<std::size_t, int>> rows;  // (track, row), from top to bottom

  double lengthNs() const { return endNs - startNs; }
  bool has(std::size_t track, int row) const;
  /// Without repeats, from top to bottom.
  std::vector<std::size_t> tracks() const;
  bool operator==(const TimelineArea&) const = default;
};

/// The rows between two heights; of a head that is touched, all rows of its track. Where there are none, all rows.
TimelineArea areaBetween(const TimelineStack& stack, std::pair<double, double> timesNs, std::pair<double, double> yPx);
/// As long as a box, over the rows of its track.
TimelineArea areaOfBox(const ArrangedTracks& tracks, std::size_t track, const TimelineItem& item);

enum class SumsBy { Step, Category, Kernel };

/// Time of boxes with one name, or of a whole track, in the range. A box counts with its part inside the range.
struct TimelineSum {
  std::size_t track = 0;
  QString name;  // empty: the sum of the track
  QString pass;  // "forward", "backward", "optimizer"; empty: of both, or of neither
  int count = 0;
  double sumNs = 0.0;
  double medianNs = 0.0;  // of the parts
  /// Idle time before its boxes, without other boxes of the sum; for a track all such time in the range.
  double idleNs = 0.0;
  std::optional<double> bytes;  // read and written, by the model's count, in these parts; nothing: not known
  QStringList owners;

  bool isTotal() const { return name.isEmpty(); }
  /// Nothing where the bytes are not known, or no time was taken.
  std::optional<double> bandwidthGBps() const;
};

/// By track, the largest first; behind them the sum of each track. No time is counted twice: of a step and its kernels
/// either it or they count, passes where nothing else of their track is chosen, and so do launches.
std::vector<TimelineSum> sumsOf(const std::vector<TimelineTrack>& tracks, const TimelineArea& area, SumsBy by);

}  // namespace fuseline::ui
