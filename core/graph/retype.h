// The same pipeline in another dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

namespace fuseline {

/// Sets the dtype of every floating-point input, and of every op with its own dtype, to `dtype`; quantizers are
/// dropped. Names stay the same.
/// Errors: an op refuses that dtype.
Result<Graph> inDType(const Graph& graph, DType dtype);

}  // namespace fuseline
