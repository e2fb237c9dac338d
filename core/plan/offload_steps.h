// The steps of activation offload: copies to host memory in forward, and back in backward.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/plan/plan.h"

#include <vector>

namespace fuseline {

/// For every tensor that forward produces and that backward of an op with cpu_offloading reads, adds steps that copy it
/// to host memory after it is produced, and into new device memory before the first backward step that reads it;
/// backward then reads the new tensor. One step begins a copy and another one ends it, so that it overlaps with the
/// steps between; a few copies run at a time. Inputs, outputs and parameters of the pipeline, and comparatively small
/// tensors, stay on the device. viewOf: by tensor, the tensor that it is a view of, or itself.
void addOffloadSteps(const Graph& graph, Plan& plan, std::vector<int>& viewOf);

}  // namespace fuseline
