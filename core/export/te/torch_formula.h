// An elementwise op that te.ops has not, as a module of PyTorch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/support/result.h"

#include <string>
#include <vector>

namespace fuseline {

/// A class of this name: parameters, and forward(x, ...) in float32, rounded once at its end. PyTorch derives the
/// gradients.
/// Errors: an op that is not elementwise, or drops elements: te.ops and PyTorch have no counterpart here.
Result<std::string> torchModule(const Graph& graph, NodeId node, const std::string& className);

/// Names of the node's parameters in that module: no names of its members, and no Python keywords.
std::vector<std::string> torchParameterNames(const Node& node);

}  // namespace fuseline
