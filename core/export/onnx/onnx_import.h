// Pipelines out of ONNX models: that of an exported model, or what its graph is made of.
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

struct ImportedPipeline {
  PipelineDocument document;
  /// What the model does not say, or the pipeline does not hold, in sentences.
  std::vector<std::string> notes = {};
  /// The parameters, as `run --tensors` takes them; only where they were asked for.
  NamedTensors weights = {};
  /// What inputs, outputs and outputs of Externals are called in the model, by their names in `run --tensors`.
  std::map<std::string, std::string> tensors = {};
  /// Why the weights could not be read; the pipeline does not need them.
  std::optional<Error> weightsProblem = {};
};

/// By its name: such files begin with nothing of their own.
bool isOnnxFile(const std::filesystem::path& path);

struct OnnxImportOptions {
  bool isStrict = false;              // nodes that are no ops of Fuseline are an error
  bool keepsFlat = false;             // layers that repeat are no instances of a block
  bool takesWeights = false;          // reads the weights, too
  std::filesystem::path folder = {};  // where their files stand, if they are not in the model
};

/// The pipeline of a model that Fuseline exported and nobody changed since; otherwise one of the ops that the graph is
/// made of: linear layers, normalizations, activations, gates, sums, reshapes. Nodes that are no ops of Fuseline become
/// ops External where they stand between ops (core/export/onnx/onnx_regions.h); others are left out and named in a
/// note: what they make becomes inputs, what they read outputs. Layers that repeat become instances of a block. Errors:
/// it is no model; no node is an op of Fuseline; tensors of other types.
Result<ImportedPipeline> importOnnx(const std::filesystem::path& path, const OnnxImportOptions& options = {});
/// bytes: of a model file. Any bytes at all are safe.
Result<ImportedPipeline> importOnnxModel(const std::string& bytes, std::string_view name,
                                         const OnnxImportOptions& options = {});

/// Of such a file, or of any other that loadDocument() reads. Errors: of either.
Result<LoadedDocument> loadOrImportDocument(const std::filesystem::path& path);

}  // namespace fuseline
