// GraphMatch: what two graphs have in common, and where they differ.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <optional>
#include <vector>

namespace fuseline {

/// Nodes of the same id belong together. A node has changed if it is gone or new, or if one of its tensors has other
/// producers or consumers than before.
struct GraphMatch {
  std::vector<NodeId> laterOf;    // by node of the earlier graph; -1: it is gone
  std::vector<NodeId> earlierOf;  // by node of the later graph; -1: it is new
  std::vector<NodeId> changedEarlier;
  std::vector<NodeId> changedLater;
};

/// nullopt: the graphs differ in more than nodes and tensors, or common nodes are in another order.
std::optional<GraphMatch> matchGraphs(const Graph& earlier, const Graph& later);

/// The nodes whose attributes differ, if that is the only difference of the graphs; nullopt: there are others.
std::optional<std::vector<NodeId>> changedAttributes(const Graph& before, const Graph& after);

}  // namespace fuseline
