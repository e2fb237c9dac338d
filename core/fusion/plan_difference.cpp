// A line difference of two lists, by their longest common subsequence.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/plan_difference.h"

#include "core/fusion/rule_text.h"
#include "core/support/json_fields.h"
#include "core/support/text.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <span>
#include <string_view>
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
using PlanRange = std::span<const PlanEntry>;

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

/// lengths[i][j]: of the longest common subsequence of expected[i..] and actual[j..].
std::vector<std::vector<int>> commonLengths(PlanRange expected, PlanRange actual) {
  std::vector<std::vector<int>> lengths(expected.size() + 1, std::vector<int>(actual.size() + 1, 0));
  for (std::size_t i = expected.size(); i-- > 0;)
    for (std::size_t j = actual.size(); j-- > 0;)
      lengths[i][j] =
          expected[i] == actual[j] ? lengths[i + 1][j + 1] + 1 : std::max(lengths[i + 1][j], lengths[i][j + 1]);
  return lengths;
}

void addLine(std::vector<PlanLine>& lines, char mark, const PlanEntry& entry) {
  lines.push_back({.mark = mark, .text = entry.text, .ops = entry.ops});
}

void addDifference(std::vector<PlanLine>& lines, PlanRange expected, PlanRange actual) {
  const auto lengths = commonLengths(expected, actual);
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < expected.size() || j < actual.size()) {
    const bool isBoth = i < expected.size() && j < actual.size() && expected[i] == actual[j];
    const bool isGone =
        !isBoth && i < expected.size() && (j == actual.size() || lengths[i + 1][j] >= lengths[i][j + 1]);
    if (isBoth)
      addLine(lines, ' ', expected[i]);
    else
      isGone ? addLine(lines, '-', expected[i]) : addLine(lines, '+', actual[j]);
    i += isBoth || isGone;
    j += isBoth || !isGone;
  }
}

/// What both begin and end with is left out of the search, which takes time with the product of both lengths.
std::vector<PlanLine> lineDifference(PlanRange expected, PlanRange actual) {
  const auto [gone, come] = std::ranges::mismatch(expected, actual);
  const auto head = static_cast<std::size_t>(gone - expected.begin());
  std::size_t tail = 0;
  const std::size_t longest = std::min(expected.size(), actual.size()) - head;
  while (tail < longest && expected[expected.size() - 1 - tail] == actual[actual.size() - 1 - tail]) ++tail;
  std::vector<PlanLine> lines;
  for (const PlanEntry& entry : expected.first(head)) addLine(lines, ' ', entry);
  addDifference(lines, expected.subspan(head, expected.size() - head - tail),
                actual.subspan(head, actual.size() - head - tail));
  for (const PlanEntry& entry : expected.last(tail)) addLine(lines, ' ', entry);
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
