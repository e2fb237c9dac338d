// Builds without Graphviz place no graphs.
// SPDX-License-Identifier: Apache-2.0
#include "app/drawing/layouts.h"

namespace fuseline {

LayOutGraph graphLayout() { return {}; }

}  // namespace fuseline
