// The layout engines of this build.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/graph_layout.h"

namespace fuseline {

/// Empty where Graphviz is not in the build. To be called on one thread at a time: Graphviz has global variables.
LayOutGraph graphLayout();

}  // namespace fuseline
