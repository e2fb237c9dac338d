// GEMMs in high precision: a switched-off GEMM can be restored, and nothing else changes.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/gemm_switches.h"

#include "core/quant/apply_recipe.h"
#include "tests/support/pipelines.h"

#include <array>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using testing::chain;
using testing::linear;

constexpr std::array kGemms = {GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad};

Graph twoLinears() { return chain(DType::BF16, {32, 32}, {linear(64, "fc1"), linear(32, "fc2")}); }

Recipe recipeFrom(const char* json) { return *recipeFromJson(Json::parse(json)); }

Recipe current() { return recipeFrom(R"({"name": "Float8CurrentScaling"})"); }

std::optional<bool> stateAt(const Recipe& recipe, const char* place, GemmRole gemm) {
  const Graph graph = twoLinears();
  return isQuantized(recipe, graph, linearsAt(graph, place), gemm);
}

TEST(GemmSwitches, PutOneGemmOfOneOpInHighPrecision) {
  const Recipe recipe = *withGemmQuantized(current(), "fc1", GemmRole::Wgrad, false);
  EXPECT_EQ(toJson(recipe)["overrides"],
            Json::parse(R"([{"gemm": "wgrad", "op": "fc1", "format": "high_precision"}])"));
  EXPECT_EQ(stateAt(recipe, "fc1", GemmRole::Wgrad), false);
  EXPECT_EQ(stateAt(recipe, "fc1", GemmRole::Dgrad), true);
  EXPECT_EQ(stateAt(recipe, "fc2", GemmRole::Wgrad), true);
}

TEST(GemmSwitches, SplitAnOverrideOfAllGemms) {
  const Recipe all =
      recipeFrom(R"({"name": "Float8CurrentScaling", "overrides": [{"op": "fc1", "format": "high_precision"}]})");
  const Recipe recipe = *withGemmQuantized(all, "fc1", GemmRole::Fprop, true);
  EXPECT_EQ(stateAt(recipe, "fc1", GemmRole::Fprop), true);
  EXPECT_EQ(stateAt(recipe, "fc1", GemmRole::Dgrad), false);
  EXPECT_EQ(stateAt(recipe, "fc1", GemmRole::Wgrad), false);
}

TEST(GemmSwitches, LeaveWhatHoldsEverywhere) {
  const Recipe everywhere =
      recipeFrom(R"({"name": "Float8CurrentScaling", "overrides": [{"gemm": "wgrad", "format": "high_precision"}]})");
  const Recipe recipe = *withGemmQuantized(everywhere, "fc1", GemmRole::Wgrad, true);
  EXPECT_EQ(recipe, everywhere);
  EXPECT_EQ(stateAt(recipe, "fc1", GemmRole::Wgrad), false);
}

/// One scale serves both directions of a gradient: that of the format with the shorter range.
TEST(GemmSwitches, OfOneFormatMoreKeepDelayedScalesWithinBoth) {
  const Recipe recipe = recipeFrom(
      R"({"name": "DelayedScaling", "overrides": [{"tensor": "grad_output", "gemm": "wgrad", "format": "e4m3"}]})");
  std::vector<Diagnostic> diagnostics;
  const Graph graph = applyRecipe(twoLinears(), recipe, diagnostics);
  for (const QuantizerState& state : quantizerStates(graph)) EXPECT_EQ(state.maxFinite, 448.0F) << state.scaleName;
}

TEST(GemmSwitches, SayNothingOfWhatIsNoLinearOrNotAllAlike) {
  const Graph graph = twoLinears();
  EXPECT_TRUE(linearsAt(graph, "nowhere").empty());
  EXPECT_EQ(isQuantized(current(), graph, linearsAt(graph, "nowhere"), GemmRole::Fprop), std::nullopt);
  const Recipe one = *withGemmQuantized(current(), "fc1", GemmRole::Fprop, false);
  const std::array both = {linearsAt(graph, "fc1").front(), linearsAt(graph, "fc2").front()};
  EXPECT_EQ(isQuantized(one, graph, both, GemmRole::Fprop), std::nullopt);
}

RC_GTEST_PROP(GemmSwitches, AreTakenBack, ()) {
  Recipe recipe = current();
  std::array<bool, 3> wanted = {true, true, true};
  const auto steps = *rc::gen::inRange(1, 12);
  for (int i = 0; i < steps; ++i) {
    const auto which = *rc::gen::inRange<std::size_t>(0, 3);
    wanted[which] = *rc::gen::arbitrary<bool>();
    recipe = *withGemmQuantized(recipe, "fc1", kGemms[which], wanted[which]);
  }
  for (std::size_t i = 0; i < kGemms.size(); ++i) {
    RC_ASSERT(stateAt(recipe, "fc1", kGemms[i]) == std::optional(wanted[i]));
    RC_ASSERT(stateAt(recipe, "fc2", kGemms[i]) == std::optional(true));
    recipe = *withGemmQuantized(recipe, "fc1", kGemms[i], true);
  }
  RC_ASSERT(recipe == current());
}

}  // namespace
}  // namespace fuseline
