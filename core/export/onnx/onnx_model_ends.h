// Embedding, tied head and loss as nodes of ONNX.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_graph.h"
#include "core/support/result.h"

namespace fuseline {

// Each writes the current op of the graph.
void addOnnxEmbedding(OnnxGraph& graph);
void addOnnxTiedLinear(OnnxGraph& graph);
/// Errors: label smoothing and the square of the log-sum-exp, which ONNX's loss does not have.
Result<void> addOnnxCrossEntropy(OnnxGraph& graph);

}  // namespace fuseline
