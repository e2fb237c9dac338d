// Notes on time ranges of a timeline, in lanes so that none covers another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/stretch_note.h"
#include "ui/timeline/timeline_area.h"

#include <vector>

namespace fuseline::ui {

struct PlacedNote {
  StretchNote note;
  int lane = 0;
};

/// Each in the first lane that is free when it begins. notes: by when they begin.
std::vector<PlacedNote> placeNotes(const std::vector<StretchNote>& notes);
int numLanes(const std::vector<PlacedNote>& notes);

/// Shown tracks that the note is about.
std::vector<std::size_t> tracksOf(const ArrangedTracks& tracks, const StretchNote& note);
/// Over their rows.
TimelineArea areaOf(const ArrangedTracks& tracks, const StretchNote& note);
/// Creates a note on a time range.
StretchNote noteOn(const std::vector<TimelineTrack>& tracks, const TimelineArea& area, const QString& text);

}  // namespace fuseline::ui
