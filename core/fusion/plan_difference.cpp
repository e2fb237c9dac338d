// A line difference of two lists, by their longest common subsequence: the longest increase of matching positions (Hunt
// and Szymanski 1977). An op is in one entry of a list, so there are no more matches than entries.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/plan_difference.h"

#include "core/fusion/rule_text.h"
#include "core/support/json_fields.h"
#include "core/support/text.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
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
using PlanRange = std::span<const PlanEntry>;

/// Errors: the rule is in no rule book, so it can never apply.
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

/// Equal entries: positions in both lists.
struct CommonEntry {
  std::size_t expected = 0;
  std::size_t actual = 0;
};
using CommonEntries = std::vector<CommonEntry>;

/// In the order of the first list; for one entry the last position first, so that no two of them are in one increasing
/// sequence. Beyond this number, which only lists of equal entries reach, the first is matched with the first, and so
/// on.
constexpr std::size_t kMostCommonEntries = std::size_t{1} << 20;

CommonEntries commonEntries(PlanRange expected, PlanRange actual) {
  std::map<std::string_view, std::vector<std::size_t>> places;
  for (std::size_t j = actual.size(); j-- > 0;) places[actual[j].text].push_back(j);
  const auto placesOf = [&](const PlanEntry& entry) -> std::vector<std::size_t>* {
    const auto found = places.find(entry.text);
    return found == places.end() ? nullptr : &found->second;
  };
  std::size_t count = 0;
  for (const PlanEntry& entry : expected)
    if (const auto* const found = placesOf(entry)) count += found->size();
  CommonEntries matches;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto* const found = placesOf(expected[i]);
    if (!found || found->empty()) continue;
    if (count <= kMostCommonEntries) {
      for (const std::size_t j : *found) matches.push_back({i, j});
    } else {
      matches.push_back({i, found->back()});
      found->pop_back();
    }
  }
  return matches;
}

/// The longest sequence of matches with positions that increase in both lists.
CommonEntries longestIncrease(const CommonEntries& matches) {
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> ends;  // by length the match that ends such a sequence earliest
  std::vector<std::size_t> before(matches.size(), kNone);
  for (std::size_t i = 0; i < matches.size(); ++i) {
    const auto longer =
        std::ranges::lower_bound(ends, matches[i].actual, {}, [&](std::size_t end) { return matches[end].actual; });
    if (longer != ends.begin()) before[i] = *std::prev(longer);
    if (longer == ends.end())
      ends.push_back(i);
    else
      *longer = i;
  }
  CommonEntries longest;
  for (std::size_t i = ends.empty() ? kNone : ends.back(); i != kNone; i = before[i]) longest.push_back(matches[i]);
  std::ranges::reverse(longest);
  return longest;
}

void addLines(std::vector<PlanLine>& lines, char mark, PlanRange entries) {
  for (const PlanEntry& entry : entries) lines.push_back({.mark = mark, .text = entry.text, .ops = entry.ops});
}

std::vector<PlanLine> lineDifference(PlanRange expected, PlanRange actual) {
  std::vector<PlanLine> lines;
  CommonEntry next;
  const auto addUpTo = [&](const CommonEntry& match) {
    addLines(lines, '-', expected.subspan(next.expected, match.expected - next.expected));
    addLines(lines, '+', actual.subspan(next.actual, match.actual - next.actual));
  };
  for (const CommonEntry& match : longestIncrease(commonEntries(expected, actual))) {
    addUpTo(match);
    addLines(lines, ' ', expected.subspan(match.expected, 1));
    next = {match.expected + 1, match.actual + 1};
  }
  addUpTo({expected.size(), actual.size()});
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
