// The rule set applied to one graph: the rules that were tried, their hits, and their misses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <vector>

namespace fuseline {

/// Why a rule is tried in a graph, or is not.
enum class RuleStanding { Tried, OutsideBook, OutsidePass };

/// A rule that matched no more than the first op of its chain: too far from a fusion to be reported first.
bool isDistant(const Attempt& attempt);

/// One rule and its attempts, which live as long as the report.
struct RuleUse {
  const FusionRule* rule = nullptr;
  RuleStanding standing = RuleStanding::Tried;
  std::vector<const Attempt*> hits;    // along the pipeline
  std::vector<const Attempt*> misses;  // in the order of the report, distant ones last

  /// Predicted saving of all hits together.
  Saving saved() const;
};

/// Every rule, in the order in which rules are tried. `pass` is that of the graph.
std::vector<RuleUse> ruleUses(const FusionReport& report, ExecutionMode pass,
                              const RuleCatalog& rules = builtinRules());

/// Predicted saving of the hits of all rules together.
Saving savedBy(const std::vector<RuleUse>& uses);

}  // namespace fuseline
