// lostCasts: conversions of a model that round, where the pipeline does not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/import/found_graph.h"
#include "core/graph/graph.h"

#include <map>
#include <string>
#include <vector>

namespace fuseline {

/// Notes about ops and outputs, with their ids. Conversions have no op: a pipeline rounds only to the dtypes of its
/// tensors. outputs: tensors of the model, by the ids of outputs. The pipeline is that of the graph.
std::map<std::string, std::vector<std::string>> lostCasts(const FoundGraph& graph,
                                                          const std::map<std::string, std::string>& outputs,
                                                          const Graph& pipeline);

}  // namespace fuseline
