// Layers of the rows of a matrix that a model makes of a tensor with more axes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_node_facts.h"
#include "core/export/onnx/onnx_proto.h"

namespace fuseline {

/// Takes layers out of the Reshape before them, [.., C] to [rows, C], and the one behind them, [rows, N] to [.., N]:
/// they compute the same from [.., C]. Such Reshapes fix sizes, and part what would be fused.
void unflattenLayers(::onnx::GraphProto& graph, const OnnxNodeFacts::Lookup& lookup);

}  // namespace fuseline
