// TimelineArrangement: how the user has put the tracks of a timeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/timeline_tracks.h"

#include <QString>
#include <QStringList>

#include <set>

namespace fuseline::ui {

enum class TimelineRowKind { Passes, Steps, Kernels, Beside, Ranks, Launches };

TimelineRowKind kindOf(const TimelineTrack& track, int row);
/// "kernels", as people call such rows.
QString nameOf(TimelineRowKind kind);

/// By the names of tracks, so that it holds for the next run, too. Tracks that are not named come last, as they are.
struct TimelineArrangement {
  QStringList order;  // from top to bottom; pinned ones stand above all others
  QStringList folded;
  QStringList pinned;
  QStringList hidden;
  std::set<TimelineRowKind> hiddenRows;  // of all tracks

  bool operator==(const TimelineArrangement&) const = default;
};

/// Under "timeline/tracks" in the settings of the user.
TimelineArrangement loadTimelineArrangement();
void saveTimelineArrangement(const TimelineArrangement& arrangement);

}  // namespace fuseline::ui
