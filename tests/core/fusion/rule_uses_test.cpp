// The rule set applied to a graph: hits, misses, and rules that are not tried.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rule_uses.h"

#include "tests/support/pipelines.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// Two linear layers with a bias each, the first one followed by a GELU.
Graph twoLayers(ExecutionMode pass = ExecutionMode::Training) {
  return chain(
      DType::BF16, {8, 16},
      {linear(32, "fc1"), link("Bias", "bias1"), link("GELU", "act"), linear(16, "fc2"), link("Bias", "bias2")},
      {.pass = pass});
}

RuleUse useOf(const std::vector<RuleUse>& uses, std::string_view rule) {
  return *std::ranges::find_if(uses, [&](const RuleUse& use) { return use.rule->name == rule; });
}

TEST(RuleUses, StandInTheOrderOfTheBook) {
  const Graph graph = twoLayers();
  const std::vector<RuleUse> uses = ruleUses(*fuse(graph), graph.pass());
  const std::vector<const FusionRule*> book = builtinRules().all();
  ASSERT_EQ(uses.size(), book.size());
  for (std::size_t i = 0; i < uses.size(); ++i) EXPECT_EQ(uses[i].rule, book[i]);
}

TEST(RuleUses, HitsStandAlongThePipelineAndAddUp) {
  const Graph graph = twoLayers();
  const FusionReport report = *fuse(graph, {.book = RuleBook::Te});
  const RuleUse use = useOf(ruleUses(report, graph.pass()), "ForwardLinearBiasActivation");
  ASSERT_EQ(use.hits.size(), 2U);
  EXPECT_EQ(graph.node(use.hits[0]->nodes.front()).id, "fc1");
  EXPECT_EQ(graph.node(use.hits[1]->nodes.front()).id, "fc2");
  EXPECT_TRUE(use.misses.empty());
  // Each bias saves a read and a write of its tensor, with 8 x 32 and 8 x 16 values of 2 bytes.
  EXPECT_EQ(use.saved(), (Saving{.bytes = 2 * 2 * (8 * 32 + 8 * 16), .launches = 2}));
  EXPECT_EQ(savedBy({use, use}), (Saving{.bytes = 2 * use.saved().bytes, .launches = 4}));
}

TEST(RuleUses, MissesThatMatchOneOpOnlyComeLast) {
  // After fc1 nothing fits; after fc2 comes the scale, but no add.
  const Graph graph = chain(
      DType::BF16, {8, 16},
      {linear(16, "fc1"), link("GELU", "act"), linear(16, "fc2"), link("ConstantScale", "scale"), link("GELU", "end")});
  const FusionReport report = *fuse(graph, {.book = RuleBook::Te});
  const RuleUse use = useOf(ruleUses(report, graph.pass()), "ForwardLinearScaleAdd");
  EXPECT_TRUE(use.hits.empty());
  ASSERT_EQ(use.misses.size(), 2U);
  EXPECT_EQ(graph.node(use.misses[0]->nodes.front()).id, "fc2");
  EXPECT_FALSE(isDistant(*use.misses[0]));
  EXPECT_EQ(graph.node(use.misses[1]->nodes.front()).id, "fc1");
  EXPECT_TRUE(isDistant(*use.misses[1]));
}

TEST(RuleUses, OnlyRulesOfTheBookAndThePassAreTried) {
  const Graph graph = twoLayers(ExecutionMode::Inference);
  const FusionReport report = *fuse(graph, {.book = RuleBook::Te});
  for (const RuleUse& use : ruleUses(report, graph.pass())) {
    const bool isForward = passName(use.rule->pass) == "forward";
    const bool isTe = use.rule->origin == RuleOrigin::Te;
    EXPECT_EQ(use.standing == RuleStanding::OutsideBook, !isTe) << use.rule->name;
    EXPECT_EQ(use.standing == RuleStanding::Tried, isTe && isForward) << use.rule->name;
  }
}

TEST(RuleUses, EveryAttemptStandsOnce) {
  const Graph graph = twoLayers();
  const FusionReport report = *fuse(graph);
  std::size_t numAttempts = 0;
  for (const RuleUse& use : ruleUses(report, graph.pass())) numAttempts += use.hits.size() + use.misses.size();
  EXPECT_EQ(numAttempts, report.attempts.size());
}

}  // namespace
}  // namespace fuseline
