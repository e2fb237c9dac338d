// Sums over the steps that a fused step stands for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <vector>

namespace fuseline {

using Steps = std::vector<const StepRecord*>;

/// The sum of several steps, round by round: the median of sums is not the sum of medians.
std::vector<double> sumPerRound(const Steps& steps);

/// The unfused steps whose ops run in this one.
Steps partsOf(const StepRecord& whole, const VariantRecord& unfused);

}  // namespace fuseline
