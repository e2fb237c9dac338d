// Costs of quantization beyond one launch that reads the tensor once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"
#include "kernels/cuda/norm/norm_cluster.h"

namespace fuseline::cuda {

/// Bytes that the step's kernels read again, and their launches beyond the first. clusters: of the device.
Saving extraCostOf(const Plan& plan, const Step& step, const ClusterLimits& clusters);

}  // namespace fuseline::cuda
