// Between notes and areas.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_notes.h"

#include "ui/theme/format.h"

#include <algorithm>

namespace fuseline::ui {

std::vector<PlacedNote> placeNotes(const std::vector<StretchNote>& notes) {
  std::vector<PlacedNote> placed;
  std::vector<double> laneEndsNs;
  for (const StretchNote& note : notes) {
    auto lane = std::ranges::find_if(laneEndsNs, [&](double endNs) { return endNs <= note.startNs; });
    if (lane == laneEndsNs.end()) lane = laneEndsNs.insert(laneEndsNs.end(), 0.0);
    *lane = note.endNs;
    placed.push_back({note, static_cast<int>(lane - laneEndsNs.begin())});
  }
  return placed;
}

int numLanes(const std::vector<PlacedNote>& notes) {
  int count = 0;
  for (const PlacedNote& placed : notes) count = std::max(count, placed.lane + 1);
  return count;
}

std::vector<std::size_t> tracksOf(const ArrangedTracks& tracks, const StretchNote& note) {
  std::vector<std::size_t> found;
  for (const std::size_t track : tracks.order())
    if (note.variant.empty() || tracks.all()[track].name == toQt(note.variant)) found.push_back(track);
  return found;
}

TimelineArea areaOf(const ArrangedTracks& tracks, const StretchNote& note) {
  const std::vector<std::size_t> noted = tracksOf(tracks, note);
  TimelineArea area{.startNs = note.startNs, .endNs = note.endNs, .rows = {}};
  for (const auto& row : tracks.rows())
    if (std::ranges::find(noted, row.first) != noted.end()) area.rows.push_back(row);
  return area;
}

StretchNote noteOn(const std::vector<TimelineTrack>& tracks, const TimelineArea& area, const QString& text) {
  const std::vector<std::size_t> chosen = area.tracks();
  return {.variant = chosen.size() == 1 ? tracks[chosen.front()].name.toStdString() : std::string(),
          .startNs = area.startNs,
          .endNs = area.endNs,
          .text = text.trimmed().toStdString()};
}

}  // namespace fuseline::ui
