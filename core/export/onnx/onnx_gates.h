// Gates of two linear layers, merged into one layer with an op that reads both halves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_patterns.h"
#include "core/export/onnx/onnx_reading.h"

#include <map>
#include <string>
#include <vector>

namespace fuseline {

/// An op that was found in a graph, by its output tensor.
struct ImportedOperation {
  std::string id;
  std::string tensor = {};
  FoundOperation found;
  int position = 0;  // of its last node
};

/// How many ops, other nodes and outputs read a tensor, by its source.
using TensorUses = std::map<std::string, int>;

/// act(A x) * (B x) of two linear layers with one input, as in models derived from LLaMA, becomes one layer with both
/// weights, and a gated activation: TransformerEngine has kernels for these. Layers and activations with other
/// consumers are kept. A layer that merges two has a note about it.
void joinGates(std::vector<ImportedOperation>& operations, const OnnxReading& graph, const TensorUses& uses);

}  // namespace fuseline
