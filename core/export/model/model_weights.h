// Weights of a model's safetensors files, under the names of the pipeline's parameters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/model/model_form.h"
#include "core/graph/graph.h"
#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <filesystem>
#include <string>
#include <vector>

namespace fuseline {

struct ModelWeights {
  NamedTensors tensors;
  std::vector<std::string> notes;
};

/// path: a safetensors file, or a folder with the shards of model.safetensors.index.json, else with model.safetensors,
/// else with other such files. Only
/// the tensors that the pipeline's parameters need are read. They are rounded where the pipeline has another dtype.
/// Errors: a file is none or is missing, a parameter has no tensor, or one of another shape.
Result<ModelWeights> readModelWeights(const ModelForm& form, const Graph& graph, const std::filesystem::path& path);

}  // namespace fuseline
