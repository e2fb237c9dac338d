// Sizes that the canvas and the automatic layout share, in scene pixels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/view_grid.h"

#include <cmath>

namespace fuseline::ui {

inline constexpr int kNodeHeightPx = 56;
inline constexpr int kEndWidthPx = 96;
inline constexpr int kEndHeightPx = 44;
/// One more port below the main one.
inline constexpr int kPortPitchPx = 24;
inline constexpr int kPortRadiusPx = 5;
/// How near the pointer must be to take a port.
inline constexpr int kPortSnapPx = 14;
inline constexpr int kGridPx = 8;
/// The nearest place on it: a whole number.
inline double onGrid(double place) { return std::round(place / kGridPx) * kGridPx; }
/// Corner radius of an op's box.
inline constexpr double kNodeCornerPx = 6.0;
inline constexpr int kFrameHeaderPx = 32;
/// Between what is in a frame and its edges: hulls and their labels have room there.
inline constexpr int kFrameMarginPx = 40;
/// The same between a frame and one in it.
inline constexpr int kNestedMarginPx = 16;
inline constexpr int kLeastFrameWidthPx = 96;
inline constexpr int kLeastFrameHeightPx = 48;
/// Below this zoom two lines of text in a node are too small to read: there is only a title, and it is larger.
inline constexpr double kFarZoom = 0.56;
inline constexpr double kFarFontFactor = 1.6;
/// Below this zoom no text can be read: nodes and hulls are plain areas.
inline constexpr double kOverviewZoom = 0.28;

}  // namespace fuseline::ui
