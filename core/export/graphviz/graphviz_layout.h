// Layered layouts by Graphviz's dot.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/graphviz/layouts.h"

namespace fuseline {

/// Fonts of the machine do not matter. Errors: what Graphviz says, as where its plugins are not installed.
Result<GraphLayout> layOutWithGraphviz(const LayoutProblem& problem);
Result<GraphLayout> layOutInRows(const LayoutProblem& problem, const LayoutGaps& gaps);

}  // namespace fuseline
