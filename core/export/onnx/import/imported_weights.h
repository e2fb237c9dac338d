// The weights of an imported pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/import/folded_places.h"
#include "core/export/onnx/onnx_import.h"
#include "core/export/onnx/onnx_weights.h"

namespace fuseline {

/// Reads them if that is requested; otherwise a note says which weights a run would use.
void addWeights(ImportedPipeline& imported, const Graph& graph, const WeightFinder& source,
                const OnnxImportOptions& options, const FoldedPlaces& places = FoldedPlaces());

}  // namespace fuseline
