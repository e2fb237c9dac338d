// The communication of a run on several ranks, for the terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <string>

namespace fuseline::cli {

/// One row per communication step of each variant, then the time that each rank computes. Empty: there is one rank.
std::string communicationTable(const RunRecord& record, bool hasColour);

}  // namespace fuseline::cli
