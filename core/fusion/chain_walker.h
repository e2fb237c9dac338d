// Follows the chain of a rule along the graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/entry_list.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace fuseline {

/// How far a chain can be followed from a start op.
struct Walk {
  std::vector<NodeId> nodes;
  std::vector<int> steps;
  std::size_t stepsMatched = 0;
  Outcome outcome = Outcome::Fused;  // Fused: the whole chain matched
  std::string explanation;
  std::vector<Repair> repairs;
};

/// Rules of one pass, in the order of the book.
using Rules = std::vector<std::shared_ptr<const FusionRule>>;

/// For each op the rule of whose runs it is part, so that no two runs of one rule share a long tail.
using Claims = std::vector<const FusionRule*>;

/// Runs of any length.
inline constexpr std::size_t kAnyLength = static_cast<std::size_t>(-1);

/// Precondition: the first step of the rule matches start. Claims: of runs that were proposed before. A run ends after
/// mostOps ops.
Walk walkChain(const Graph& graph, const FusionRule& rule, const EntryList& entries, const Claims& claims, NodeId start,
               std::size_t mostOps);

}  // namespace fuseline
