// The result of a run in one line, the same in the terminal, the window and the report.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <string>

namespace fuseline {

/// 3 where two decimals would make both ends of the confidence interval equal, or nearly so; else 2.
int decimalsOfSpeedup(const ComparisonRow& endToEnd);

/// "fused 515 ms, unfused 480 ms: speed-up 0.76x in paired rounds (95 % CI 0.60 to 1.10), not statistically
/// significant". Empty where only one plan was measured.
std::string headline(const ComparisonRow& endToEnd);

/// One sentence where the ratio of the two medians lies outside the confidence interval of the paired ratio, or, with
/// too few rounds for one, apart from that ratio; else empty.
std::string headlineCaveat(const ComparisonRow& endToEnd);

}  // namespace fuseline
