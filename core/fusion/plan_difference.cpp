// A line difference of two lists, by dtl (Wu et al., O(NP), 1990). The difference of long lists that share little is
// complete, but not always the shortest: dtl limits its memory.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/plan_difference.h"

#include "core/fusion/rule_text.h"
#include "core/support/json_fields.h"
#include "core/support/text.h"
#include "core/support/visible_text.h"

#include <dtl/dtl.hpp>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// An entry of a plan's list.
struct PlanEntry {
  std::string text;
  std::vector<std::string> ops;
  bool operator==(const PlanEntry&) const = default;
};
using PlanEntries = std::vector<PlanEntry>;

/// Errors: the rule is in no rule set, so it can never apply.
void checkRule(JsonFields& entry) {
  Json rule;
  entry.read("rule", rule, Presence::Optional);
  if (!rule.is_string() || builtinRules().find(rule.get<std::string>())) return;
  std::vector<std::string> names;
  for (const FusionRule* known : builtinRules().all()) names.push_back(known->name);
  const std::string name = rule.get<std::string>();
  entry.refuse("rule", fmt::format("there is no rule {}{} `fuseline rules` lists them.", name,
                                   didYouMean(nearest(name, names))));
}

PlanEntries entriesOf(JsonFields& plan, const char* list) {
  PlanEntries entries;
  plan.readObjects(list, [&](JsonFields& entry) {
    std::string name;
    std::vector<std::string> ops;
    entry.read("name", name);
    entry.read("ops", ops);
    checkRule(entry);
    entries.push_back({.text = fmt::format("{} ({})", name, fmt::join(ops, ", ")), .ops = ops});
  });
  return entries;
}

/// Within a change, lines that are gone stand before those that are new.
std::vector<PlanLine> lineDifference(const PlanEntries& expected, const PlanEntries& actual) {
  dtl::Diff<PlanEntry, PlanEntries> difference(expected, actual);
  difference.compose();
  std::vector<PlanLine> lines;
  std::vector<PlanLine> added;
  for (const auto& [entry, place] : difference.getSes().getSequence()) {
    const char mark = place.type == dtl::SES_COMMON ? ' ' : place.type == dtl::SES_ADD ? '+' : '-';
    if (mark == ' ') std::ranges::move(std::exchange(added, {}), std::back_inserter(lines));
    (mark == '+' ? added : lines).push_back({.mark = mark, .text = entry.text, .ops = entry.ops});
  }
  std::ranges::move(added, std::back_inserter(lines));
  return lines;
}

}  // namespace

Result<std::vector<PlanListDifference>> planDifference(const Json& expected, const Json& actual) {
  JsonFields expectedPlan(expected, "");
  JsonFields actualPlan(actual, "");
  std::vector<PlanListDifference> lists;
  expectedPlan.alsoNamed("fusedQuantizations", "handOvers");
  for (const char* list : {"forward", "backward", "fusedQuantizations"}) {
    const bool isOlderFile = list == std::string_view("fusedQuantizations") && expectedPlan.isNull(list);
    if (isOlderFile) continue;
    const PlanEntries before = entriesOf(expectedPlan, list);
    const PlanEntries now = entriesOf(actualPlan, list);
    if (before != now) lists.push_back({.list = list, .lines = lineDifference(before, now)});
  }
  if (expectedPlan.error()) return *expectedPlan.error();
  return lists;
}

std::vector<PlanListDifference> planDifference(const Graph& expected, const FusionReport& expectedReport,
                                               const Graph& actual, const FusionReport& actualReport) {
  Result<std::vector<PlanListDifference>> lists =
      planDifference(planJson(expected, expectedReport), planJson(actual, actualReport));
  return lists ? std::move(*lists) : std::vector<PlanListDifference>();
}

std::string toString(const std::vector<PlanListDifference>& lists) {
  std::string text;
  for (const PlanListDifference& each : lists) {
    text += each.list + "\n";
    for (const PlanLine& line : each.lines) text += fmt::format("  {} {}\n", line.mark, visibleText(line.text));
  }
  return text;
}

}  // namespace fuseline
