// Routing, permutation and grouped linear layers as modules of resources/torch/modules.py.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/te/python_text.h"
#include "core/graph/graph.h"

#include <string>

namespace fuseline {

/// Is the node an op between which TransformerEngine has functions of other forms only?
bool isRouting(const Node& node);
/// The call that makes the module. Precondition: isRouting(), or a GroupedLinear.
PythonCall torchExperts(const Graph& graph, const Node& node);
/// A class of this name, made with a device alone, of the module that torchExperts() makes. Precondition: isRouting().
std::string routingModule(const Graph& graph, const Node& node, const std::string& className);

}  // namespace fuseline
