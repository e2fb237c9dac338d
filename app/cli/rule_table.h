// Results of each rule of the book in one pipeline, and what they saves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule_uses.h"
#include "core/support/json.h"

#include <string>
#include <vector>

namespace fuseline::cli {

/// A line a rule, their sum, and a sentence about the model behind the figures.
std::string ruleUseTable(const std::vector<RuleUse>& uses, const DeviceModel& device, bool hasColour);

/// Where the rule hit and what that saves, and where it missed and why.
std::string ruleUseText(const RuleUse& use, const Graph& graph, const DeviceModel& device, bool hasColour);

Json useJson(const RuleUse& use, const DeviceModel& device);
/// Null: it is not known.
Json modelJson(const DeviceModel& device);
/// Their schemas.
Json useSchema();
Json modelSchema();

}  // namespace fuseline::cli
