// Pipelines from ONNX models: that of an exported model, or one reconstructed from its graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/file_format.h"
#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// "layer2.fc" and "/model/layers.2/fc/MatMul (MatMul)".
struct ImportedNodes {
  std::string op;
  std::vector<std::string> nodes;
};

struct ImportedPipeline {
  PipelineDocument document;
  /// Information that is missing in the model or in the pipeline, in sentences.
  std::vector<std::string> notes = {};
  /// The parameters, as `run --tensors` takes them; only if requested.
  NamedTensors weights = {};
  /// Names in the model of inputs, outputs and outputs of Externals, by their names in `run --tensors`.
  std::map<std::string, std::string> tensors = {};
  /// The model's nodes behind each op, in the order of the ops; empty for a model that Fuseline exported.
  std::vector<ImportedNodes> nodes = {};
  /// Why the weights could not be read; the pipeline does not need them.
  std::optional<Error> weightsProblem = {};
};

/// Decided by its name: such files have no signature.
bool isOnnxFile(const std::filesystem::path& path);

struct OnnxImportOptions {
  bool isStrict = false;                             // nodes that are no ops of Fuseline are an error
  bool keepsFlat = false;                            // layers that repeat are no instances of a block
  bool takesWeights = false;                         // reads the weights, too
  std::filesystem::path folder = {};                 // folder of the external data, for models that do not contain them
  std::map<std::string, std::int64_t> extents = {};  // defaults of symbols that the model leaves open
};

/// The pipeline of a model that Fuseline exported and that was not changed since; otherwise a pipeline of the ops found
/// in the graph: linear layers, normalizations, activations, gates, sums, reshapes. Nodes that are no ops of Fuseline
/// become External ops if they are between ops (core/export/onnx/onnx_regions.h); others are left out and named in a
/// note: their outputs become inputs of the pipeline, their inputs its outputs. Layers that repeat become instances of
/// a block. Errors: it is no model; no node is an op of Fuseline; tensors of other types.
Result<ImportedPipeline> importOnnx(const std::filesystem::path& path, const OnnxImportOptions& options = {});
/// bytes: of a model file. Any bytes are safe.
Result<ImportedPipeline> importOnnxModel(const std::string& bytes, std::string_view name,
                                         const OnnxImportOptions& options = {});

}  // namespace fuseline
