// Writes an op as nodes of ONNX.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_graph.h"
#include "core/export/onnx/onnx_quantization.h"
#include "core/support/result.h"

namespace fuseline {

/// Adds the current op of the graph, as it is in inference. Errors: ONNX has nothing for it, with the op's name.
Result<void> addOnnxOperation(OnnxGraph& graph, OnnxQuantization& quantization);

/// Is it written as the recipe has it? A linear layer of which ONNX cannot hold the formats is in high precision.
bool followsRecipeInOnnx(const Node& node);

}  // namespace fuseline
