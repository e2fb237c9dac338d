// The same pipeline in another dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

namespace fuseline {

/// Every floating-point input and every op that names its own dtype becomes `dtype`; quantizers are dropped. Names stay
/// the same.
/// Errors: what an op refuses in that dtype.
Result<Graph> inDType(const Graph& graph, DType dtype);

}  // namespace fuseline
