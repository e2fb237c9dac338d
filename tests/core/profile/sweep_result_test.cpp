// Output of a sweep: its lines, its tables for other programs, and recipes against the first one.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/sweep_result.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using Samples = std::vector<double>;

constexpr std::size_t kRounds = 10;

VariantRecord plan(const std::string& name, Samples endToEndNs, std::int64_t peakBytes, std::int64_t launches) {
  return {.name = name, .endToEndNs = std::move(endToEndNs), .peakBytes = peakBytes, .launches = launches};
}

RunRecord runOf(const Samples& unfusedNs, const Samples& fusedNs) {
  RunRecord record;
  record.variants = {plan("unfused", unfusedNs, 2000, 5), plan("fused", fusedNs, 1000, 3)};
  return record;
}

/// Every round took as long: enough of them for a verdict.
SweepRow row(std::int64_t size, const std::string& recipe, double unfusedNs, double fusedNs) {
  return measuredRow({.symbols = {{"M", size}}, .recipe = recipe},
                     runOf(Samples(kRounds, unfusedNs), Samples(kRounds, fusedNs)));
}

/// Under None fused is slower at 1, and twice as fast at 2; under MXFP8 only 2 was measured.
SweepResult twoRecipes() {
  return {.pipelineName = "mlp",
          .deviceName = "a CPU",
          .sweep = {.axes = {{"M", {1, 2}}}, .recipes = {"None", "MXFP8BlockScaling"}},
          .rows = {row(1, "None", 100, 200),
                   row(2, "None", 400, 200),
                   {.point = {.symbols = {{"M", 1}}, .recipe = "MXFP8BlockScaling"}, .reason = "1 is odd, so \"no\"."},
                   row(2, "MXFP8BlockScaling", 400, 50)}};
}

TEST(SweepResult, SaysForEveryRecipeWhereFusingPays) {
  const std::vector<SweepLine> lines = linesOf(twoRecipes());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].sentence("M"), "None: fused is faster from M = 2 on; slower at 1");
  EXPECT_EQ(lines[1].sentence("M"), "MXFP8BlockScaling: fused is faster at all measured sizes of M");
}

TEST(SweepResult, OfASweepThatWasStoppedHasTheLinesThatWereBegun) {
  SweepResult result = twoRecipes();
  result.rows.resize(1);
  const std::vector<SweepLine> lines = linesOf(result);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].sentence("M"), "None: fused is slower at all measured sizes of M");
  result.rows.clear();
  EXPECT_TRUE(linesOf(result).empty());
}

TEST(SweepResult, ComparesRecipesAtTheSameSize) {
  SweepResult result{.sweep = twoRecipes().sweep};
  for (SweepRow& each : twoRecipes().rows) addRow(result, std::move(each));
  EXPECT_FALSE(result.rows[0].figures.overFirstRecipe) << "it is the first";
  EXPECT_FALSE(result.rows[2].figures.overFirstRecipe) << "it was not measured";
  ASSERT_TRUE(result.rows[3].figures.overFirstRecipe);
  EXPECT_DOUBLE_EQ(result.rows[3].figures.overFirstRecipe->median, 4.0);  // 200 over 50
  SweepResult firstIsMissing{.sweep = twoRecipes().sweep};
  addRow(firstIsMissing, {.point = {.symbols = {{"M", 2}}, .recipe = "None"}, .reason = "No."});
  addRow(firstIsMissing, twoRecipes().rows[3]);
  EXPECT_FALSE(firstIsMissing.rows[1].figures.overFirstRecipe);
}

TEST(SweepResult, WritesALineForEveryRow) {
  EXPECT_EQ(sweepCsv(twoRecipes()),
            "M,recipe,rounds,unfused_median_ns,unfused_lower_quartile_ns,unfused_upper_quartile_ns,fused_median_ns,"
            "fused_lower_quartile_ns,fused_upper_quartile_ns,speedup,speedup_low,speedup_high,unfused_peak_bytes,"
            "fused_peak_bytes,unfused_launches,fused_launches,reason\r\n"
            "1,None,10,100,100,100,200,200,200,0.5,0.5,0.5,2000,1000,5,3,\r\n"
            "2,None,10,400,400,400,200,200,200,2,2,2,2000,1000,5,3,\r\n"
            "1,MXFP8BlockScaling,,,,,,,,,,,,,,,\"1 is odd, so \"\"no\"\".\"\r\n"
            "2,MXFP8BlockScaling,10,400,400,400,50,50,50,8,8,8,2000,1000,5,3,\r\n");
}

TEST(SweepResult, KeepsTheColumnOfRecipesWhereOneIsThePipelinesOwn) {
  SweepResult result{.sweep = {.axes = {{"M", {1}}}, .recipes = {"", "None"}}, .rows = {row(1, "", 1, 1)}};
  const std::string csv = sweepCsv(result);
  EXPECT_NE(csv.find("\r\n1,,10,1,"), std::string::npos) << csv;
}

TEST(SweepResult, NamesTheRulesThatWereApplied) {
  VariantRecord fused;
  fused.steps = {{.name = "a", .rule = "ForwardLinearBias"}, {.name = "b"}, {.name = "c", .rule = "ForwardLinearBias"}};
  EXPECT_EQ(appliedRules(fused), (std::vector<std::string>{"ForwardLinearBias", "ForwardLinearBias"}));
}

}  // namespace
}  // namespace fuseline
