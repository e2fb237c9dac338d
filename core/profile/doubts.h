// Warnings about a run's measurement, as text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <string>
#include <vector>

namespace fuseline {

/// Fact of a record's environment: the CPU time that other programs used during the rounds.
inline constexpr std::string_view kNeighboursFact = "other programs";

/// Warnings: other programs used part of the CPUs, or steps of the run exceeded the measured peaks. Usually empty.
std::vector<std::string> doubtsOf(const RunRecord& record);

}  // namespace fuseline
