// Ops that pass their input on, perhaps under another shape: nothing is computed, so plans launch nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

namespace fuseline {

/// Completes an op whose y has the elements of x in the same order. `op` has its texts, ports, attributes and `infer`;
/// infer must keep dtype and number of elements. Backward keeps the shape of x, no tensor.
BasicOperation viewOperation(BasicOperation op);

}  // namespace fuseline
