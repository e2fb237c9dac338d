// Finds boxes of a timeline by what they are called.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/arranged_tracks.h"
#include "ui/timeline/timeline_walk.h"

#include <QString>

#include <vector>

namespace fuseline::ui {

/// Boxes of shown rows whose label, step, kernel, category or ops have every word of the query; where there is none,
/// those whose label has its letters in order. By track from top to bottom, then in the order in which they began. An
/// empty query finds nothing.
std::vector<TimelinePlace> findBoxes(const ArrangedTracks& tracks, const QString& query);

}  // namespace fuseline::ui
