// How messages name an op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <span>
#include <string>
#include <string_view>

namespace fuseline {

/// "fc1 (Linear)".
std::string nameOf(const Graph& graph, NodeId id);

/// "fc1, act": the ids of a run of ops. A long run is cut, so that texts about each of its ops stay short:
/// "o0, o1, o2, o3, o4, o5, o6, o7 and 92 more".
std::string idsOf(const Graph& graph, std::span<const NodeId> nodes, std::string_view separator = ", ");

}  // namespace fuseline
