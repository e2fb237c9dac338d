// Predicted savings of fusions: the difference between the plans without and with each of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/plan/savings/planned_window.h"

#include <stop_token>

namespace fuseline {

struct KnownSavings;

/// Minimum traffic of a step, with a second read where a scale follows from the amax of a whole tensor; and one launch.
Saving costOf(const Step& step);
/// The work of one run of the plan, with the extra costs of the device's kernels.
Saving costOf(const Plan& plan, const Capabilities& device = {});

/// Fuses a graph by plans. Overlapping fusions are compared by the plans of their neighborhoods, in which nothing else
/// is fused. The report then has the difference that each applied fusion makes to the plan, and the one that a missed
/// fusion would make in place of the fusions that have its ops. Missed ones that would be legal then, or after an edit
/// of one attribute, are planned; the others keep the estimate of the fuser.
/// known: savings that need not be planned again, and those that are found; nullptr: none are kept.
/// A report whose fusion was stopped is incomplete, to be thrown away.
/// Errors: those of fuse().
Result<FusionReport> fuseByPlans(const Graph& graph, FusionOptions fusion, const PlanOptions& options = {},
                                 KnownSavings* known = nullptr, const std::stop_token& stop = {});

}  // namespace fuseline
