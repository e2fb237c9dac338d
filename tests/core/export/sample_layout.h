// A layout that needs no library, and pipelines to draw with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/graph_layout.h"
#include "core/plan/analysis.h"

#include <string>

namespace fuseline {

/// One box below the other, and everything else at the origin.
Result<GraphLayout> inAColumn(const LayoutProblem& problem);

/// Analysis of a template.
Analysis analysisOf(const std::string& name);

}  // namespace fuseline
