// ModelEnds: the nodes of an imported model before and after the ops of the pipeline, as the pipeline file keeps them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/support/json.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Stands in place of an External's id in the names of constants of these nodes. No id has a colon.
inline constexpr const char* kModelEndsName = "onnx:model";

/// The section of the pipeline file.
inline constexpr const char* kModelEndsSection = "onnx";

/// An input or output of the model.
struct ModelTensor {
  std::string name;
  /// The pipeline's input or output, or "attention.y" for an output of an External. Empty: the nodes make it.
  std::string from = {};
};

struct ModelEnds {
  std::string nodes;                     // KeptNodes::text; empty: there are none
  std::vector<std::string> inputs;       // ids of the pipeline's outputs that they read, or "attention.y" as above
  std::vector<std::string> outputs;      // ids of the pipeline's inputs that they make
  std::vector<ModelTensor> modelInputs;  // those that the pipeline has, too
  std::vector<ModelTensor> modelOutputs;
  std::vector<std::string> constants;  // ids of the pipeline's inputs whose numbers the model has
};

Json toJson(const ModelEnds& ends);
/// Nothing: the document has none, or another program changed them.
std::optional<ModelEnds> modelEnds(const PipelineDocument& document);

}  // namespace fuseline
