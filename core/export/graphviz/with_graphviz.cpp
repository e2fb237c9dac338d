// Builds with Graphviz place graphs with it.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/graphviz/graphviz_layout.h"

namespace fuseline {

LayOutGraph graphLayout() { return layOutWithGraphviz; }

LayOutGraph rowLayout(const LayoutGaps& gaps) {
  return [gaps](const LayoutProblem& problem) { return layOutInRows(problem, gaps); };
}

}  // namespace fuseline
