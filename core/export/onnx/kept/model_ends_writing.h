// Writes the nodes before and after the ops of a pipeline into its model again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_model.h"

namespace fuseline {

/// The model then has the inputs and outputs of the one that was imported; further outputs of the pipeline follow.
/// graph: as it was written into `model`. Where the nodes do not fit, as constants of theirs are not given or the
/// pipeline has changed, `model` gets a note and keeps the inputs and outputs of the pipeline.
void addModelEnds(const ExportedPipeline& pipeline, const Graph& graph, const OnnxGraph& onnx, OnnxModel& model);

/// Numbers of the imported model that are inputs of the pipeline: those that are given become constants again.
void fillModelConstants(const ExportedPipeline& pipeline, OnnxModel& model);

}  // namespace fuseline
