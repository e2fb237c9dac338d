// Fuses the neighborhood of an edit again, and takes the rest of the report from the analysis before it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"

#include <optional>
#include <set>
#include <string>

namespace fuseline {

struct KnownSavings;

struct SplicedReport {
  FusionReport report;
  /// All other ops of the pipeline have the nodes, tensors and fusions that they had before.
  std::set<std::string> ops;
};

/// The report is equal to that of fuseByPlans() for the later graph. `earlier` has no error, and was fused with the
/// same options, as were the graphs of `known`. nullopt: the graphs differ in too many places, or the edit changes
/// fusions far away from it.
std::optional<SplicedReport> splicedReport(const Analysis& earlier, const Graph& later, const FusionOptions& fusion,
                                           const PlanOptions& plan, KnownSavings& known);

}  // namespace fuseline
