// The steps of activation offload: copies to the host's memory in forward, and back in backward.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/plan/plan.h"

#include <vector>

namespace fuseline {

/// For every tensor that forward makes and that backward of an op with cpu_offloading reads: steps that copy it to the
/// host's memory when it is made, and into new memory of the device ahead of the first step of backward that reads it,
/// which then reads that. A copy is begun by one step and ended by another, with others between, so that it runs
/// beside them; a few are under way at a time. Inputs, outputs and parameters of the pipeline stay, and what is small
/// beside the rest. viewOf: by tensor, the one whose memory it shows, or itself.
void addOffloadSteps(const Graph& graph, Plan& plan, std::vector<int>& viewOf);

}  // namespace fuseline
