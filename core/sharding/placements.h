// Placements: which part of every tensor of a whole model each rank of a tensor-parallel group holds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/sharding/shard.h"
#include "core/support/result.h"

#include <string>
#include <vector>

namespace fuseline {

/// The part of a node on several ranks.
enum class RankRole {
  Alone,      // works on the rank's part, or on the whole like all ranks
  Column,     // column-parallel: weight split by out_features
  Row,        // row-parallel: weight split by in_features, results added over the ranks
  RowPart,    // the GEMM of a row-parallel layer whose results a later op adds over the ranks
  Collective  // AllGather, ReduceScatter, AllReduce
};

struct Placements {
  std::vector<Shard> values;       // by ValueId of the whole model's graph; of a gradient that of its value
  std::vector<RankRole> roles;     // by NodeId
  std::vector<std::string> notes;  // sentences about places where N ranks compute something else than one rank
};

/// Infers the placements of a graph that describes the whole model. An input takes the part that the first op needs
/// that cares: column-parallel with sequence parallelism a slice of the rows, row-parallel a slice of the features;
/// else the whole. Errors: two ops need different parts of one tensor; an op cannot work on a part, with the reason and
/// the repair.
Result<Placements> inferPlacements(const Graph& whole, int ranks);

/// How the ranks share a parameter of a node.
Shard parameterShard(const Graph& whole, const Placements& placements, NodeId node, int slot);
/// And its gradient: a bias before a sum over the ranks is on rank 0, but each rank has all of its gradient.
Shard parameterGradientShard(const Graph& whole, const Placements& placements, NodeId node, int slot);

/// Does each rank compute the gradients of the node's parameters from its own rows only?
bool hasPartialGradients(const Graph& whole, const Placements& placements, NodeId node);

}  // namespace fuseline
