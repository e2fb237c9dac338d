// Finds ops of Fuseline in an ONNX graph, each by the nodes that implement it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_weights.h"
#include "core/support/json.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

struct FoundOperation {
  std::string operation;
  Json attributes = Json::object();
  std::vector<std::pair<std::string, std::string>> inputs = {};  // port and tensor of the graph
  std::optional<DType> dtype = std::nullopt;                     // of its weights
  std::vector<FoundWeight> weights = {};
  std::string note = {};                  // how the op differs from the nodes, as the end of a sentence; usually empty
  std::vector<std::string> outputs = {};  // tensors of all its outputs, if it has several
  bool isWhole = false;                   // it represents nodes that cannot be written separately
};

/// The op that produces a tensor and whose own inputs are produced by other ops; nothing if there is none. Larger ones
/// come first: a gate before an activation, a layer with a bias before one without.
std::optional<FoundOperation> operationAt(const OnnxReading& graph, const std::string& tensor);

/// "SwiGLU" for SiLU: the op that activates one half of its input and multiplies it by the other. Empty: there is none.
std::string gatedForm(const FoundOperation& activation);
/// The attributes that the gated op shares with the activation.
Json gatedAttributes(const FoundOperation& activation);

}  // namespace fuseline
