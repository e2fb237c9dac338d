// Sorts the attempts of a report by their rules.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rule_uses.h"

#include <algorithm>
#include <map>

namespace fuseline {

namespace {

bool isForwardOnly(FusionPass pass) { return pass == FusionPass::Forward || pass == FusionPass::ForwardQuantization; }

RuleStanding standingOf(const FusionRule& rule, RuleBook book, ExecutionMode pass) {
  if (book == RuleBook::Te && rule.origin != RuleOrigin::Te) return RuleStanding::OutsideBook;
  if (pass == ExecutionMode::Inference && !isForwardOnly(rule.pass)) return RuleStanding::OutsidePass;
  return RuleStanding::Tried;
}

void add(const Saving& saving, Saving& sum) {
  sum.bytes += saving.bytes;
  sum.launches += saving.launches;
}

}  // namespace

bool isDistant(const Attempt& attempt) { return attempt.outcome == Outcome::BrokenChain && attempt.stepsMatched <= 1; }

Saving RuleUse::saved() const {
  Saving sum;
  for (const Attempt* hit : hits)
    if (hit->saving) add(*hit->saving, sum);
  return sum;
}

Saving savedBy(const std::vector<RuleUse>& uses) {
  Saving sum;
  for (const RuleUse& use : uses) add(use.saved(), sum);
  return sum;
}

std::vector<RuleUse> ruleUses(const FusionReport& report, ExecutionMode pass, const RuleCatalog& rules) {
  std::vector<RuleUse> uses;
  std::map<const FusionRule*, std::size_t> places;
  for (const FusionRule* rule : rules.all()) {
    places.emplace(rule, uses.size());
    uses.push_back({.rule = rule, .standing = standingOf(*rule, report.book, pass)});
  }
  for (const Attempt& attempt : report.attempts) {
    RuleUse& use = uses[places.at(attempt.rule)];
    (attempt.outcome == Outcome::Fused ? use.hits : use.misses).push_back(&attempt);
  }
  for (RuleUse& use : uses)
    std::stable_partition(use.misses.begin(), use.misses.end(),
                          [](const Attempt* attempt) { return !isDistant(*attempt); });
  return uses;
}

}  // namespace fuseline
