// RankGraph: the graph of one rank, made of the graph of the whole model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/sharding/placements.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// The same names of inputs, outputs and parameters as the whole model, with the shapes of one rank. Column- and
/// row-parallel layers are GEMMs with collectives before and after them.
struct RankGraph {
  Graph graph;
  /// By the names of tensors that a run binds or returns, and of activations: "x", "fc1.weight", "grad.fc1.weight",
  /// "y", "grad.y", "norm:y". What is not in it is whole.
  std::map<std::string, Shard, std::less<>> shards;
  std::vector<std::string> notes;  // those of the placements
};

/// rank: from 0 to ranks - 1; it decides only which elements of a tensor dropouts drop, and who updates a bias that the
/// ranks add up. Errors: those of inferPlacements(); a size that the ranks cannot share equally, with the tensor's
/// name.
Result<RankGraph> rankGraph(const Graph& whole, int rank, int ranks);

}  // namespace fuseline
