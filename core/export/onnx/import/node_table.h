// The nodes of the model behind each imported op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/import/folded_places.h"
#include "core/export/onnx/import/found_graph.h"
#include "core/export/onnx/onnx_import.h"

#include <vector>

namespace fuseline {

/// In the order of the ops; nodes in execution order, without those that only pass a tensor on.
std::vector<ImportedNodes> nodeTable(const FoundGraph& graph, const FoldedPlaces& places);

}  // namespace fuseline
