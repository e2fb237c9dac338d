// Folded stacks: the input format of flamegraph.pl, inferno and speedscope.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <string>

namespace fuseline {

/// One line for each step of each variant and for each of its traced kernels, "fused;forward;layer1;fc1 41250": its
/// path, then its time in nanoseconds, the median over the rounds. Estimates are left out. Source of the format:
/// github.com/brendangregg/FlameGraph, "stackcollapse".
/// Errors: a run with steps that were not timed.
Result<std::string> foldedStacks(const RunRecord& record);

}  // namespace fuseline
