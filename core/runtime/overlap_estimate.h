// OverlapEstimate: how much of its communication a plan hides, and how much more TransformerEngine's Userbuffers would.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"
#include "core/support/json.h"
#include "core/support/output_schema.h"

#include <span>
#include <string>
#include <vector>

namespace fuseline {

struct TimeRange {
  double lowNs = 0.0;
  double highNs = 0.0;
  TimeRange& operator+=(const TimeRange& other);
  TimeRange operator-(const TimeRange& other) const { return {lowNs - other.lowNs, highNs - other.highNs}; }
};

/// "41 to 79 us", or "41 us" if the range is empty.
std::string toString(const TimeRange& range);

/// Time of a step of a plan, measured or estimated.
struct StepTime {
  double computeNs = 0.0;
  TimeRange communication = {};  // of the collective that the step begins
  double latencyNs = 0.0;        // its part that does not depend on the number of bytes
};

struct OverlapEstimate {
  TimeRange communication;
  TimeRange hidden;       // overlapped with the steps before its wait, as the plan schedules it
  TimeRange userbuffers;  // further time that Userbuffers would hide

  TimeRange exposed() const { return communication - hidden; }
  OverlapEstimate& operator+=(const OverlapEstimate& other);
};

/// One a step; zero for steps that begin no collective. Userbuffers are modeled as TransformerEngine uses them: an
/// all-gather is a ring of P - 1 transfers, each during the GEMM of a chunk; a reduce-scatter is cut in four, three
/// parts of which run during the GEMM of the next one. Collectives that a plan overlaps as a whole stay as they are.
/// times: by step.
std::vector<OverlapEstimate> estimateOverlap(const Plan& plan, const Graph& graph, int ranks,
                                             std::span<const StepTime> times);

/// "Userbuffers would hide about 20 to 31 us of the exposed 41 to 79 us (estimate)." Empty if they would hide nothing.
std::string userbuffersText(const OverlapEstimate& estimate);

Json toJson(const OverlapEstimate& estimate);
schema::Fields overlapEstimateFields();

}  // namespace fuseline
