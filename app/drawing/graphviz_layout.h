// Layered layouts by Graphviz's dot.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/graph_layout.h"

namespace fuseline {

/// Fonts of the machine do not matter. Errors: what Graphviz says, as where its plugins are not installed.
Result<GraphLayout> layOutWithGraphviz(const LayoutProblem& problem);

}  // namespace fuseline
