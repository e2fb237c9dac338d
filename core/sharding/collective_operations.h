// The collectives as ops of the graph of one rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <string_view>

namespace fuseline {

/// The input of a column-parallel layer without sequence parallelism: forward hands it on, backward adds the gradients
/// of all ranks.
inline constexpr std::string_view kReplicatedInput = "ReplicatedInput";

/// The same with sequence parallelism: forward gathers the rows of all ranks, and backward gathers them again.
inline constexpr std::string_view kShardedInput = "ShardedInput";

/// AllGather, ReduceScatter, AllReduce, ReplicatedInput or ShardedInput on `ranks` ranks.
OperationPointer collectiveOperation(std::string_view name, int ranks);

}  // namespace fuseline
