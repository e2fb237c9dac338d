// Fuses the neighborhood of an edit again, and takes the rest of the report from the analysis before it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"

#include <optional>

namespace fuseline {

struct KnownSavings;

/// Equal to fuseByPlans() of the later graph. `earlier` has no error, and was fused with the same options, as were the
/// graphs of `known`.
/// nullopt: the graphs differ in too many places, or the edit changes fusions far away from it.
std::optional<FusionReport> splicedReport(const Analysis& earlier, const Graph& later, const FusionOptions& fusion,
                                          const PlanOptions& plan, KnownSavings& known);

}  // namespace fuseline
