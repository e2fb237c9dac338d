// The step that updates the parameters at the end of a training pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan_tensors.h"

#include <optional>

namespace fuseline {

inline constexpr const char* kAdamWKernel = "adamw";

/// One step for all parameters: member i is the i-th of trainedParameters(). Its operands are the parameter, its
/// gradient, and as residuals the moments and the float32 copy, if there is one. {0, Input, 0} counts the updates. Adds
/// the tensors that the optimizer keeps. Nothing: the graph has no optimizer, or no parameter is trained.
/// Precondition: all gradients have been computed.
std::optional<Step> optimizerStep(const Graph& graph, PlanTensors& tensors);

}  // namespace fuseline
