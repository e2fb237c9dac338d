// Runs that the tests of exporters write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <string>
#include <vector>

namespace fuseline {

/// 2 us in the median of three rounds, 100 bytes.
StepRecord sampleStep(std::string name, std::string phase, std::vector<std::string> ops);

/// Nine rounds, twice as fast when fused: fc1 and act are one step, norm is the same in both plans.
RunRecord comparedRun();

/// The exported text, or the error.
std::string exported(const char* format, const RunRecord& record);

}  // namespace fuseline
