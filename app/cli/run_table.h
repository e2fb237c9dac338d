// The table of `fuseline run`: each fused op with its basic ops beneath it, and the totals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <string>

namespace fuseline::cli {

/// Fits 120 columns. A speed-up that is not significant is marked with "~".
std::string runTable(const RunRecord& record, bool hasColour);

/// The rows, the sum and the end-to-end row, with medians, quartiles and confidence intervals.
Json toJson(const Comparison& comparison);
Json comparisonSchema();

}  // namespace fuseline::cli
