// What makes one doubt the figures of a run, in sentences.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <string>
#include <vector>

namespace fuseline {

/// Of a record's environment: what other programs took of the CPUs during the rounds.
inline constexpr std::string_view kNeighboursFact = "other programs";

/// Other programs that took a part of the CPUs, and roofs that the run's own steps exceeded. Mostly empty.
std::vector<std::string> doubtsOf(const RunRecord& record);

}  // namespace fuseline
