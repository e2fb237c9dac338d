// Results of a sweep, as a table for the terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/sweep_result.h"

#include <string>

namespace fuseline::cli {

std::string sweepTable(const SweepResult& result, bool hasColour);

}  // namespace fuseline::cli
