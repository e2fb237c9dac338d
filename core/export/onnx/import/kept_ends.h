// Keeps the nodes of a model before and after the ops, so that an export writes the whole model again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/import/external_ops.h"
#include "core/export/onnx/import/folded_places.h"
#include "core/export/onnx/import/found_graph.h"
#include "core/export/onnx/kept/kept_nodes.h"
#include "core/export/onnx/kept/model_ends.h"

#include <map>
#include <string>
#include <vector>

namespace fuseline {

struct KeptEnds {
  ModelEnds ends;
  std::vector<KeptConstant> constants;
};

/// graph: with all ports named, those of Externals, too. outputIds: tensors by the ids of the pipeline's outputs.
/// Names of inputs and outputs alone if there are no nodes before and after the ops, or they cannot be kept.
KeptEnds keptEnds(const FoundGraph& graph, const std::map<std::string, std::string>& outputIds,
                  const KeptSource& source, const FoldedPlaces& places);

}  // namespace fuseline
