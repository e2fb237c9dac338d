// Compares a fused plan with another one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/support/json.h"
#include "core/support/result.h"

#include <string>
#include <vector>

namespace fuseline {

struct PlanLine {
  char mark = ' ';  // '-': expected only; '+': actual only
  std::string text;
  std::vector<std::string> ops;  // ids of the graph
};

/// One of the lists "forward", "backward" and "fusedQuantizations", including the entries of both plans.
struct PlanListDifference {
  std::string list;
  std::vector<PlanLine> lines;
};

/// Both as written by `fuseline fuse --format json`. Compares only the forward and backward lists: reasons and savings
/// may be reworded. Returns the lists that differ. Errors: `expected` is no plan.
Result<std::vector<PlanListDifference>> planDifference(const Json& expected, const Json& actual);

/// The same for two reports, without the cost of writing them.
std::vector<PlanListDifference> planDifference(const Graph& expected, const FusionReport& expectedReport,
                                               const Graph& actual, const FusionReport& actualReport);

/// A line for each, with its mark, under the name of its list.
std::string toString(const std::vector<PlanListDifference>& lists);

}  // namespace fuseline
