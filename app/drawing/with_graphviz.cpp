// Builds with Graphviz place graphs with it.
// SPDX-License-Identifier: Apache-2.0
#include "app/drawing/graphviz_layout.h"
#include "app/drawing/layouts.h"

namespace fuseline {

LayOutGraph graphLayout() { return layOutWithGraphviz; }

}  // namespace fuseline
