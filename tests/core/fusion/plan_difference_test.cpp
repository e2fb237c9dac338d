// Differences of plans' lists: they hold both lists, and no line is told twice that both have.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/plan_difference.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline::testing {
namespace {

using Names = std::vector<std::string>;

Json planOf(const Names& names) {
  Json forward = Json::array();
  for (const std::string& name : names) forward.push_back({{"name", name}, {"rule", nullptr}, {"ops", {name}}});
  return {{"forward", forward}, {"backward", Json::array()}, {"fusedQuantizations", Json::array()}};
}

/// Longest common subsequence of two short lists, by exhaustive search.
std::size_t longestCommon(const Names& a, const Names& b, std::size_t i = 0, std::size_t j = 0) {
  if (i == a.size() || j == b.size()) return 0;
  if (a[i] == b[j]) return 1 + longestCommon(a, b, i + 1, j + 1);
  return std::max(longestCommon(a, b, i + 1, j), longestCommon(a, b, i, j + 1));
}

TEST(PlanDifferenceProperty, HoldsBothListsAndTheirLongestCommonPart) {
  EXPECT_TRUE(rc::check([] {
    const auto names = rc::gen::container<Names>(rc::gen::element<std::string>("a", "b", "c"));
    const Names expected = *rc::gen::resize(7, names);
    const Names actual = *rc::gen::resize(7, names);
    const Result<std::vector<PlanListDifference>> lists = planDifference(planOf(expected), planOf(actual));
    RC_ASSERT(static_cast<bool>(lists));
    RC_ASSERT(lists->empty() == (expected == actual));
    if (lists->empty()) return;
    RC_ASSERT(lists->size() == 1u);
    Names before, after;
    std::size_t numCommon = 0;
    for (const PlanLine& line : lists->front().lines) {
      if (line.mark != '+') before.push_back(line.ops.front());
      if (line.mark != '-') after.push_back(line.ops.front());
      numCommon += line.mark == ' ';
    }
    RC_ASSERT(before == expected);
    RC_ASSERT(after == actual);
    RC_ASSERT(numCommon == longestCommon(expected, actual));
  }));
}

TEST(PlanDifference, NamesListsAndOps) {
  const Result<std::vector<PlanListDifference>> lists = planDifference(planOf({"a", "b"}), planOf({"a", "c"}));
  ASSERT_TRUE(lists);
  EXPECT_EQ(toString(*lists), "forward\n    a (a)\n  - b (b)\n  + c (c)\n");
  EXPECT_FALSE(planDifference(Json::array(), planOf({})));
}

TEST(PlanDifference, ReadsPlansOfOlderPrograms) {
  Json plan = planOf({"a"});
  plan["fusedQuantizations"] = Json::array({{{"name", "fc.input"}, {"ops", {"a", "fc"}}}});
  Json older = plan;
  older["handOvers"] = older["fusedQuantizations"];
  older.erase("fusedQuantizations");
  EXPECT_TRUE(planDifference(older, plan)->empty());
  EXPECT_EQ(planDifference(older, planOf({"a"}))->front().list, "fusedQuantizations");
  older.erase("handOvers");  // before there were any
  EXPECT_TRUE(planDifference(older, plan)->empty());
}

}  // namespace
}  // namespace fuseline::testing
