// The format "onnx": a model file for other runtimes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/pipeline_exporter.h"

namespace fuseline {

/// The keys of metadata_props.
inline constexpr const char* kOnnxPipelineKey = "fuseline.pipeline";  // the pipeline file's text
inline constexpr const char* kOnnxPipelineHashKey = "fuseline.pipeline_hash";
inline constexpr const char* kOnnxGraphHashKey = "fuseline.graph_hash";  // hash of the graph as it was written

/// A listing of the graph, and a file of the same with the weights: those of the tensors given, else the initial ones,
/// drawn from the seed.
/// Errors: those of onnxModel(); weights of 2 GiB or more, which protobuf cannot hold; tensors that do not fit.
Result<PipelineText> onnxFile(const ExportedPipeline& pipeline);

}  // namespace fuseline
