// The menu of a timeline's tracks: to fold, pin, move and hide them, and rows of a kind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timeline/timeline_view.h"

#include <QMenu>

#include <cstddef>
#include <optional>

namespace fuseline::ui {

/// Adds the commands for one track, or a menu for each; then the kinds of rows, and Show all.
void fillTracksMenu(QMenu& menu, TimelineView& view, std::optional<std::size_t> track);

}  // namespace fuseline::ui
