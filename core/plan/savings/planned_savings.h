// Predicted savings of the fusions of a plan: the difference between the plans without and with each of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/plan/plan.h"

namespace fuseline {

/// The work of one run of the plan: minimum traffic, with a second read where a scale follows from the amax of a whole
/// tensor; and one launch a step.
Saving costOf(const Plan& plan);

/// The report without one of its fusions: with its ops by themselves. Quantization is then fused where their entries
/// allow it. fusion: the options with which the report was made.
FusionReport reportWithout(const Graph& graph, const FusionOptions& fusion, const FusionReport& report,
                           const Attempt& hit);

/// Sets the savings of all applied fusions. The fuser compares candidates by the traffic of their ops alone; a plan
/// also shows which tensors are views of others, and which quantized tensors are shared.
void predictFromPlans(const Graph& graph, const FusionOptions& fusion, const PlanOptions& options,
                      FusionReport& report);

}  // namespace fuseline
