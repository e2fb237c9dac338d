// The pitch of nodes in a view, shared by edits that make room and by the canvas, in units of positions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuseline {

inline constexpr int kNodeWidthPx = 152;
/// Room for the shape on a wire.
inline constexpr int kWireGapPx = 72;
inline constexpr int kNodePitchPx = kNodeWidthPx + kWireGapPx;
inline constexpr int kRowPitchPx = 120;

}  // namespace fuseline
