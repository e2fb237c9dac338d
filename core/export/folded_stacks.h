// Folded stacks: what flamegraph.pl, inferno and speedscope read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <string>

namespace fuseline {

/// A line for each step of each variant and for each of its kernels that were traced, "fused;forward;layer1;fc1 41250":
/// where it stands, then what it took in nanoseconds, in the median over the rounds. Estimates are left out.
/// Source of the format: github.com/brendangregg/FlameGraph, "stackcollapse".
/// Errors: a run whose steps were not timed.
Result<std::string> foldedStacks(const RunRecord& record);

}  // namespace fuseline
