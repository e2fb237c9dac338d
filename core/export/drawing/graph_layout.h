// Positions in a drawing: the parts to lay out, and the layout function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <functional>
#include <vector>

namespace fuseline {

// All in pixels, y downwards.
struct DrawnPoint {
  double x = 0.0;
  double y = 0.0;
};
struct DrawnSize {
  double width = 0.0;
  double height = 0.0;
};
struct DrawnRect {
  DrawnPoint topLeft;
  DrawnSize size;
};

enum class Flow { Down, Up };

/// Boxes, wires and frames are referred to by their place in these lists.
struct LayoutProblem {
  struct Wire {
    int from = 0;  // boxes; not the same
    int to = 0;
    DrawnSize label;
    bool isMain = false;  // is kept straight
  };
  struct Frame {
    std::vector<int> boxes;  // without those of inner frames; frames have no box in common
    int outer = -1;          // an earlier frame; -1: none
    DrawnSize title;
  };
  Flow flow = Flow::Down;
  std::vector<DrawnSize> boxes;
  std::vector<Wire> wires;
  std::vector<Frame> frames;
};

struct GraphLayout {
  /// Bézier: a point, then three for each piece.
  using Curve = std::vector<DrawnPoint>;
  struct Wire {
    std::vector<Curve> curves;  // with a label two, to it and from it; none is empty
    DrawnPoint tip;             // of the arrow, whose base is the end of the last curve
    DrawnPoint label;           // its center
  };
  struct Frame {
    DrawnRect rect;
    DrawnPoint title;  // its centre
  };
  DrawnSize size;
  std::vector<DrawnPoint> boxes;  // their centres
  std::vector<Wire> wires;
  std::vector<Frame> frames;
};

/// Lays out a graph; every list of the result has the length of the problem's. The same problem gives the same layout.
/// Empty: this build has no layout library. Errors: a sentence about the library's failure.
using LayOutGraph = std::function<Result<GraphLayout>(const LayoutProblem&)>;

}  // namespace fuseline
