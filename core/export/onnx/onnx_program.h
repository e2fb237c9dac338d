// Writes an elementwise op as nodes of ONNX, one an instruction of its program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_graph.h"

namespace fuseline {

/// Can the op be written so: is it elementwise, and does it draw no random numbers?
bool hasOnnxProgram(const Node& node);

/// Adds the current op of the graph: in float32, and rounded once to the dtype of each output.
/// Precondition: hasOnnxProgram().
void addOnnxProgram(OnnxGraph& graph);

}  // namespace fuseline
