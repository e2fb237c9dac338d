// Where keys lead on a timeline: to the box beside, above or below.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/arranged_tracks.h"

#include <compare>
#include <cstddef>
#include <optional>

namespace fuseline::ui {

/// A box of a tracks.
struct TimelinePlace {
  std::size_t track = 0;
  std::size_t item = 0;
  auto operator<=>(const TimelinePlace&) const = default;
};

enum class TimelineMove { Before, Behind, Above, Below };

/// The first step, from where keys start; nullopt: there is none.
std::optional<TimelinePlace> firstStep(const ArrangedTracks& tracks);

/// Before and behind in the row; above and below the box that is nearest in time, in the next row that has any.
/// nullopt: the move leads nowhere.
std::optional<TimelinePlace> neighbourOf(const ArrangedTracks& tracks, TimelinePlace from, TimelineMove move);

}  // namespace fuseline::ui
