// Targets for a GPU: the lines that benchmarks draw, and what is beyond them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/profile/stats.h"

namespace fuseline::cli {

/// The wanted share of a step's time that its least time by the measured peaks takes. isMemoryBound: memory is its
/// limit.
double wantedShare(const StepRecord& step, bool isMemoryBound);

/// Is a fused plan's speed-up within 5 % of the one that the measured peaks allow? ceiling: above 0.
bool isNearCeiling(const RatioStats& speedup, double ceiling);

/// Does a trace make a run at most 2 % longer? Nanoseconds, the plain one above 0.
bool isCheapTrace(double tracedNs, double plainNs);

}  // namespace fuseline::cli
