// A line difference of two lists, by their longest common subsequence.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/plan_difference.h"

#include "core/fusion/rule_text.h"
#include "core/support/json_fields.h"
#include "core/support/text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {

using Lines = std::vector<std::string>;

/// Of a rule that is in no book, nothing can be expected.
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

Lines entriesOf(JsonFields& plan, const char* list) {
  Lines lines;
  plan.readObjects(list, [&](JsonFields& entry) {
    std::string name;
    std::vector<std::string> ops;
    entry.read("name", name);
    entry.read("ops", ops);
    checkRule(entry);
    lines.push_back(fmt::format("{} ({})", name, fmt::join(ops, ", ")));
  });
  return lines;
}

/// lengths[i][j]: of the longest common subsequence of expected[i..] and actual[j..].
std::vector<std::vector<int>> commonLengths(const Lines& expected, const Lines& actual) {
  std::vector<std::vector<int>> lengths(expected.size() + 1, std::vector<int>(actual.size() + 1, 0));
  for (std::size_t i = expected.size(); i-- > 0;)
    for (std::size_t j = actual.size(); j-- > 0;)
      lengths[i][j] =
          expected[i] == actual[j] ? lengths[i + 1][j + 1] + 1 : std::max(lengths[i + 1][j], lengths[i][j + 1]);
  return lengths;
}

std::vector<PlanLine> lineDifference(const Lines& expected, const Lines& actual) {
  const auto lengths = commonLengths(expected, actual);
  std::vector<PlanLine> lines;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < expected.size() || j < actual.size()) {
    const bool isBoth = i < expected.size() && j < actual.size() && expected[i] == actual[j];
    const bool isGone =
        !isBoth && i < expected.size() && (j == actual.size() || lengths[i + 1][j] >= lengths[i][j + 1]);
    if (isBoth)
      lines.push_back({' ', expected[i]});
    else
      lines.push_back(isGone ? PlanLine{'-', expected[i]} : PlanLine{'+', actual[j]});
    i += isBoth || isGone;
    j += isBoth || !isGone;
  }
  return lines;
}

}  // namespace

Result<std::vector<PlanListDifference>> planDifference(const Json& expected, const Json& actual) {
  JsonFields expectedPlan(expected, "");
  JsonFields actualPlan(actual, "");
  std::vector<PlanListDifference> lists;
  for (const char* list : {"forward", "backward", "handOvers"}) {
    const bool isOlderFile = list == std::string_view("handOvers") && !expected.contains(list);
    if (isOlderFile) continue;
    const Lines before = entriesOf(expectedPlan, list);
    const Lines now = entriesOf(actualPlan, list);
    if (before != now) lists.push_back({.list = list, .lines = lineDifference(before, now)});
  }
  if (expectedPlan.error()) return *expectedPlan.error();
  return lists;
}

std::string toString(const std::vector<PlanListDifference>& lists) {
  std::string text;
  for (const PlanListDifference& each : lists) {
    text += each.list + "\n";
    for (const PlanLine& line : each.lines) text += fmt::format("  {} {}\n", line.mark, line.text);
  }
  return text;
}

}  // namespace fuseline::cli
