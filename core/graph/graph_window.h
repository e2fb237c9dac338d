// Windows: a few neighboring ops of a graph as a graph of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace fuseline {

inline constexpr int kAllReaders = std::numeric_limits<int>::max();

/// These nodes, and those that `hops` tensors lead to from them, in either direction; ascending. mostReaders: of one
/// tensor, the first ones.
std::vector<NodeId> nodesAround(const Graph& graph, const std::vector<NodeId>& from, int hops,
                                int mostReaders = kAllReaders);

/// The graph of these nodes, which are ascending. Tensors from outside are inputs, and tensors with consumers outside
/// are outputs. Nodes keep their names, attributes and quantizers.
Graph windowOf(const Graph& graph, const std::vector<NodeId>& nodes);

/// The same with other attributes of some of the ops. Nothing: an op does not accept its attributes, or an op its
/// inputs.
std::optional<Graph> windowOf(const Graph& graph, const std::vector<NodeId>& nodes,
                              const std::map<NodeId, Attributes>& attributes);

/// The same graph, this node with other attributes and the op for them, on which nothing else may depend.
Graph withAttributes(Graph graph, NodeId id, Attributes attributes, OperationPointer operation);

}  // namespace fuseline
