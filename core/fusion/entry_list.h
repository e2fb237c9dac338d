// The list of entries that fusion is building: which entry each op belongs to so far.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace fuseline {

struct EntryList {
  explicit EntryList(const Graph& graph) : owner(graph.nodes().size(), -1) {}
  std::vector<FusedOperation> fusions;
  std::vector<int> owner;  // index into fusions, or -1

  bool isFree(NodeId id) const { return owner[static_cast<std::size_t>(id)] < 0; }

  const FusedOperation* entryOf(NodeId id) const {
    const int index = owner[static_cast<std::size_t>(id)];
    return index < 0 ? nullptr : &fusions[static_cast<std::size_t>(index)];
  }
  /// Where the op's entry runs.
  NodeId place(NodeId id) const {
    const FusedOperation* entry = entryOf(id);
    return entry ? entry->nodes.back() : id;
  }
  void add(FusedOperation fusion) {
    for (const NodeId id : fusion.nodes) owner[static_cast<std::size_t>(id)] = static_cast<int>(fusions.size());
    fusions.push_back(std::move(fusion));
  }
};

/// The whole list: fusions at the places of their last ops, basic ops in between.
/// backwardOnly: entries that take no part in backward are left out.
std::vector<FusedOperation> toList(const Graph& graph, const EntryList& entries, bool backwardOnly);

/// Does any of these ops take part in backward?
bool takesPartInBackward(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace fuseline
