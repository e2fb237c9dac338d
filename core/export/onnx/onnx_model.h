// The forward pass of a pipeline as an ONNX graph, as yet without the data of its weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/kept/kept_nodes.h"
#include "core/export/onnx/onnx_graph.h"
#include "core/export/pipeline_exporter.h"
#include "core/support/result.h"

#include <string>
#include <vector>

namespace fuseline {

struct OnnxModel {
  ::onnx::GraphProto graph;
  OnnxOpsets opsets;
  std::vector<OnnxWeight> weights;
  std::vector<WrittenConstant> constants;  // of the nodes that External ops replace
  std::vector<std::string> notes;
};

/// In inference: Dropout passes its input on. A symbol of the pipeline names an extent of inputs and outputs where the
/// graph is the same with another value for it. An External becomes the nodes that an import has kept of it.
/// Errors: an op that ONNX cannot hold, by name; a pipeline that is not one in inference.
Result<OnnxModel> onnxModel(const ExportedPipeline& pipeline);

}  // namespace fuseline
