// Reads from the tensors of a run how many tokens each expert got.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/profile/experts/expert_load.h"
#include "core/runtime/timed_plan.h"

#include <vector>

namespace fuseline {

/// One for each MoEPermute, and for each tensor of split_sizes that is no op's, in the order of the plan.
/// Precondition: the plan has run.
std::vector<ExpertLoad> expertLoads(const Graph& graph, const TimedPlan& ran);

}  // namespace fuseline
