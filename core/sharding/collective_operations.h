// The collectives as ops of the graph of one rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <string_view>

namespace fuseline {

/// The input of a column-parallel layer without sequence parallelism: forward hands it on, backward adds the gradients
/// of all ranks.
inline constexpr std::string_view kReplicatedInput = "InputGradientAllReduce";

/// The same with sequence parallelism: forward gathers the rows of all ranks, and backward gathers them again.
inline constexpr std::string_view kShardedInput = "InputAllGather";

/// AllGather, ReduceScatter, AllReduce, kReplicatedInput or kShardedInput on `ranks` ranks.
OperationPointer collectiveOperation(std::string_view name, int ranks);

}  // namespace fuseline
