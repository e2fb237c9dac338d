// Costs of quantization beyond one launch that reads the tensor once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

namespace fuseline::cuda {

/// Bytes that the step's kernels read again, and their launches beyond the first.
Saving extraCostOf(const Plan& plan, const Step& step);

}  // namespace fuseline::cuda
