// The steps that update the parameters at the end of a training pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan_tensors.h"

#include <vector>

namespace fuseline {

inline constexpr const char* kAdamWKernel = "adamw";
inline constexpr const char* kGradNormKernel = "grad_norm";

/// The last one updates all parameters: member i is the i-th of trainedParameters(). Its operands are the parameter,
/// its gradient, and as residuals the moments and the float32 copy, if there is one. {0, Input, 0} counts the updates.
/// Adds the tensors that the optimizer keeps.
///
/// If gradients are clipped, a step before it reads them, with the same members, and writes {0, Output, 0}, the sums of
/// their squares (kGradientSquares), which the last one reads as {0, Input, 1}; between them, ranks add up the first
/// sum. None: the graph has no optimizer, or no parameter is trained. Precondition: all gradients have been computed.
std::vector<Step> optimizerSteps(const Graph& graph, PlanTensors& tensors);

}  // namespace fuseline
