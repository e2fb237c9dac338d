// Builds without Graphviz place no graphs.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/graphviz/layouts.h"

namespace fuseline {

LayOutGraph graphLayout() { return {}; }

LayOutGraph rowLayout(const LayoutGaps&) { return {}; }

}  // namespace fuseline
