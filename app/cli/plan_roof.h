// The least time that a device's roofs allow a plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/runtime/backend.h"

#include <vector>

namespace fuseline::cli {

/// What a step does, and by which of a device's arithmetics.
struct StepWork {
  enum class Arithmetic { F32, Bf16Product, Fp8Product } arithmetic = Arithmetic::F32;
  double flops = 0.0;
  double bytes = 0.0;
};

/// Of every step that gives the device something to do. Products are in bf16, or in FP8 where a recipe quantizes the
/// op.
std::vector<StepWork> workOf(const Graph& graph, const Plan& plan);

/// Nanoseconds, step by step at the nearer of its two roofs: its bytes at the bandwidth of a copy, its operations at
/// the peak of its arithmetic. A model: launches take no time in it. 0 without roofs.
double leastTimeNs(const std::vector<StepWork>& work, const DeviceRoofs& roofs);

}  // namespace fuseline::cli
