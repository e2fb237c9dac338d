// Gates of two linear layers, as one layer of which an op reads both halves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_patterns.h"
#include "core/export/onnx/onnx_reading.h"

#include <map>
#include <string>
#include <vector>

namespace fuseline {

/// An op that was found in a graph, by the tensor that it makes.
struct ImportedOperation {
  std::string id;
  std::string tensor = {};
  FoundOperation found;
  int position = 0;  // of its last node
};

/// How many ops, other nodes and outputs read a tensor, by its source.
using TensorUses = std::map<std::string, int>;

/// act(A x) * (B x) of two linear layers of one input, as models that descend from LLaMA have it, becomes one layer of
/// both, and the gated activation of its result: what TransformerEngine has kernels for. Layers and activations that
/// somebody else reads stay. A layer that holds two has a note of it.
void joinGates(std::vector<ImportedOperation>& operations, const OnnxReading& graph, const TensorUses& uses);

}  // namespace fuseline
