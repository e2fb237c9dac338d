// Writes an op as nodes of ONNX.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_graph.h"
#include "core/export/onnx/onnx_quantization.h"
#include "core/support/result.h"

namespace fuseline {

/// Adds the current op of the graph, in its inference form. Errors: ONNX has no equivalent, with the op's name.
Result<void> addOnnxOperation(OnnxGraph& graph, OnnxQuantization& quantization);

/// Is it written as the recipe defines? A linear layer with formats that ONNX does not support is in high precision.
bool followsRecipeInOnnx(const Node& node);

}  // namespace fuseline
