// The extents of a Reshape's result, also if the model has numbers in place of symbols.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_facts.h"

namespace fuseline {

/// shape: that of the input. wanted: with 0 for an extent of the input (unless `keepsZero`) and -1 for the remaining
/// extent. Unknown extents are unknown in the result.
OnnxExtents reshapedExtents(const OnnxExtents& shape, OnnxExtents wanted, bool keepsZero, OnnxFactSymbols& symbols);

}  // namespace fuseline
