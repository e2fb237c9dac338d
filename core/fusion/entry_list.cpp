// Puts fusions and basic ops in the order in which they run.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/entry_list.h"

#include <algorithm>

namespace fuseline {

bool takesPartInBackward(const Graph& graph, std::span<const NodeId> nodes) {
  return std::ranges::any_of(nodes, [&](NodeId id) { return graph.node(id).takesPartInBackward(); });
}

std::vector<FusedOperation> toList(const Graph& graph, const EntryList& entries, bool backwardOnly) {
  std::vector<FusedOperation> list;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const FusedOperation* entry = entries.entryOf(id);
    const bool isRun = entry && (!backwardOnly || takesPartInBackward(graph, entry->nodes));
    if (isRun && entry->nodes.back() == id) list.push_back(*entry);
    if (!entry && (!backwardOnly || graph.node(id).takesPartInBackward())) list.push_back({.nodes = {id}});
  }
  return list;
}

}  // namespace fuseline
