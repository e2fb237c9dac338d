// Attention, rotary embeddings, splits and concatenations as nodes of ONNX that every runtime has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_graph.h"
#include "core/support/result.h"

namespace fuseline {

// Each writes the current op of the graph, in float32 inside.
/// Sequence lengths are inputs, from which nodes compute the mask.
void addOnnxAttention(OnnxGraph& graph);
/// Errors: positions that are inputs.
Result<void> addOnnxRotaryEmbedding(OnnxGraph& graph);
void addOnnxSplit(OnnxGraph& graph);
void addOnnxConcat(OnnxGraph& graph);

}  // namespace fuseline
