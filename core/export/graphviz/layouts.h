// The layout engines of this build.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/graph_layout.h"

namespace fuseline {

/// Empty where Graphviz is not in the build. On any thread; calls wait for each other.
LayOutGraph graphLayout();

/// In pixels.
struct LayoutGaps {
  double layer = 14.4;  // between a box and the next one along the flow
  double box = 21.6;    // between boxes beside each other
  double frame = 8.0;   // around the boxes of a frame
};
/// The same from left to right, whatever the flow of a problem is.
LayOutGraph rowLayout(const LayoutGaps& gaps);

}  // namespace fuseline
