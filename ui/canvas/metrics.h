// Sizes that the canvas, the automatic layout and the composed edits share, in scene pixels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuseline::ui {

inline constexpr int kNodeWidthPx = 128;
inline constexpr int kNodeHeightPx = 46;
inline constexpr int kEndWidthPx = 72;
inline constexpr int kEndHeightPx = 34;
/// One more port below the main one.
inline constexpr int kPortPitchPx = 22;
inline constexpr int kPortRadiusPx = 5;
/// How near the pointer must be to take a port.
inline constexpr int kPortSnapPx = 14;
/// Room for the shape on a wire.
inline constexpr int kWireGapPx = 88;
inline constexpr int kNodePitchPx = kNodeWidthPx + kWireGapPx;
inline constexpr int kRowPitchPx = 112;
inline constexpr int kGridPx = 8;

}  // namespace fuseline::ui
