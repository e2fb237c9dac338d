// One pass as SVG, at its place in a drawing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/drawn_pass.h"
#include "core/export/drawing/graph_layout.h"
#include "core/export/drawing/palette.h"
#include "core/export/html.h"

#include <string>

namespace fuseline {

/// "forward ↓": the direction of the data flow.
std::string phaseHeading(Phase phase);
/// Height of the line with the heading, above the layout.
inline constexpr double kHeadingPx = 28.0;

Html svgPass(const DrawnPass& pass, const GraphLayout& layout, const DrawnPoint& origin);

/// The class of a frame, and the style of its outline.
struct FrameLook {
  const char* name;
  const char* DrawingPalette::*color;
  const char* dashes;  // nullptr: a line without gaps
};
FrameLook lookOf(FrameKind kind);

}  // namespace fuseline
