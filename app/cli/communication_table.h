// The communication of a run on several ranks, for the terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/runtime/rank_prediction.h"

#include <string>
#include <vector>

namespace fuseline::cli {

/// One row per communication step of each variant, then the time that each rank computes. Empty: there is one rank.
std::string communicationTable(const RunRecord& record, bool hasColour);

/// One row per variant and number of ranks, with ranges. The first number of ranks is the one that others are compared
/// with.
std::string predictionTable(const std::vector<RankPrediction>& predictions, const RankLink& link, bool hasColour);

}  // namespace fuseline::cli
