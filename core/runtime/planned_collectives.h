// PlannedCollectives: what each rank sends in the communication steps of a plan, by the ring algorithm, and an estimate
// of its time between GPUs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/plan/plan.h"
#include "core/runtime/overlap_estimate.h"
#include "core/support/json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline {

struct PlannedCollective {
  std::string step;
  std::string op;          // in the document; empty: it belongs to the pipeline
  std::string phase;       // "forward", "backward", "optimizer"
  std::string collective;  // "all-gather"
  std::int64_t wireBytes = 0;
  /// Between H100 GPUs over NVLink 4, with their GEMMs at the peak of the data sheet, which hides the least.
  OverlapEstimate estimate = {};
};

/// Bytes that each rank sends in a communication step.
std::int64_t wireBytesOf(const Plan& plan, const Step& step, int ranks);

/// In the order of the plan, which is one of one rank.
std::vector<PlannedCollective> plannedCollectives(const Plan& plan, const Graph& graph, int ranks);

/// Bytes that each rank sends in a run.
std::int64_t sentBytes(const std::vector<PlannedCollective>& collectives);

/// A line for each collective, under a heading, then an estimate of their times between GPUs. Empty without
/// collectives.
std::string toString(const std::vector<PlannedCollective>& collectives, int ranks);
/// "Estimate for nvlink4 (...): 41 to 79 us of communication, of which the plan hides 10 to 20 us." followed by a
/// sentence about Userbuffers. Empty without collectives.
std::string estimateText(const std::vector<PlannedCollective>& collectives);
/// The same sentence of the collectives that a Userbuffers fusion would contain. Empty for other fusions.
std::string userbuffersText(const Analysis& analysis, const Attempt& attempt);
Json toJson(const std::vector<PlannedCollective>& collectives);
Json plannedCollectivesSchema();

}  // namespace fuseline
