// Links between boxes of the same ops on a timeline, in two plans or in two passes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/timeline_tracks.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// Two items.
using TimelineLink = std::pair<std::size_t, std::size_t>;

/// Steps of two tracks that do the work of the same ops in the same pass.
std::vector<TimelineLink> sameWork(const TimelineTrack& a, const TimelineTrack& b);

/// Steps of a track that do the work of the same ops, as (forward, backward).
std::vector<TimelineLink> acrossPasses(const TimelineTrack& track);

}  // namespace fuseline::ui
