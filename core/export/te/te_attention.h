// Attention, rotary embeddings, splits and concatenations as modules between what te.ops.Sequential runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <string>

namespace fuseline {

/// Is the node an op that TransformerEngine has outside of te.ops, or PyTorch as a function?
bool isTeModule(const Node& node);

/// A class of this name, whose forward takes the inputs of the node in the order of its ports. Precondition:
/// isTeModule().
std::string teModule(const Graph& graph, NodeId node, const std::string& className);

}  // namespace fuseline
