// The rows that compare the fused plan with the unfused one.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/comparison_text.h"
#include "core/profile/run_record.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

StepRecord step(std::string name, std::vector<std::string> ops, std::int64_t bytes, std::vector<double> samples,
                std::string phase = "forward") {
  return {.name = std::move(name),
          .phase = std::move(phase),
          .ops = std::move(ops),
          .bytes = bytes,
          .samplesNs = std::move(samples)};
}

StepRecord fusedStep(std::vector<std::string> ops, std::int64_t bytes, std::vector<double> samples) {
  StepRecord record = step("R(...)", std::move(ops), bytes, std::move(samples));
  record.rule = "R";
  return record;
}

/// a and b are fused, c is not; seven rounds.
RunRecord sampleRecord() {
  RunRecord record;
  record.variants.push_back(
      {.name = "unfused",
       .steps = {step("a", {"a"}, 100, {4, 1, 4, 4, 4, 4, 4}), step("b", {"b"}, 50, {2, 5, 2, 2, 2, 2, 2}),
                 step("c", {"c"}, 10, {1, 1, 1, 1, 1, 1, 1})},
       .endToEndNs = {7, 7, 7, 7, 7, 7, 7}});
  record.variants.push_back(
      {.name = "fused",
       .steps = {fusedStep({"a", "b"}, 90, {3, 3, 3, 3, 3, 3, 3}), step("c", {"c"}, 10, {1, 1, 1, 1, 1, 1, 1})},
       .endToEndNs = {4, 4, 4, 4, 4, 4, 4}});
  return record;
}

TEST(CompareVariants, PutsTheBasicOpsBeneathTheirFusion) {
  const Comparison comparison = compareVariants(sampleRecord());
  ASSERT_EQ(comparison.rows.size(), 4u);
  EXPECT_TRUE(comparison.rows[0].isFused);
  EXPECT_EQ(comparison.rows[1].label, "a");
  EXPECT_EQ(comparison.rows[1].depth, 1);
  EXPECT_EQ(comparison.rows[2].label, "b");
  EXPECT_EQ(comparison.rows[3].label, "c");
  EXPECT_EQ(comparison.rows[3].depth, 0);
}

TEST(UnitsOf, StepsHaveThreeDigitsWhateverTheTotalIs) {
  const auto unitOf = [](std::vector<double> stepsNs, double totalNs) {
    RunRecord record;
    record.variants.push_back({.name = "fused", .endToEndNs = {totalNs}});
    for (std::size_t i = 0; i < stepsNs.size(); ++i)
      record.variants.back().steps.push_back(step("s" + std::to_string(i), {"a"}, 1, {stepsNs[i]}));
    return std::string(unitsOf(compareVariants(record)).time.name);
  };
  EXPECT_EQ(unitOf({32e6, 188e6, 500e6}, 1.04e9), "ms");
  EXPECT_EQ(unitOf({14e3, 40e3, 900e3}, 2.2e6), "us");
  EXPECT_EQ(unitOf({14e3, 1.4e6, 2e6}, 3.5e6), "us") << "0.014 ms would have two digits";
  EXPECT_EQ(unitOf({2e3, 1.5e9, 2e9}, 4e9), "ms") << "one unit smaller at most";
  EXPECT_EQ(unitOf({}, 3e6), "ms") << "without steps it is that of the total";
}

TEST(CompareVariants, KeepsTheStepsOfOneOpApart) {
  RunRecord record;
  for (const char* variant : {"unfused", "fused"})
    record.variants.push_back({.name = variant,
                               .steps = {step("experts", {"experts"}, 100, {4, 4, 4}, "backward"),
                                         step("experts (wgrad)", {"experts"}, 50, {2, 2, 2}, "backward")}});
  const Comparison comparison = compareVariants(record);
  ASSERT_EQ(comparison.rows.size(), 2u);
  EXPECT_EQ(comparison.rows[1].label, "experts (wgrad)");
  EXPECT_DOUBLE_EQ(comparison.rows[0].unfused.median, 4);
  EXPECT_DOUBLE_EQ(comparison.rows[1].unfused.median, 2);
  EXPECT_EQ(comparison.rows[0].bytesSaved + comparison.rows[1].bytesSaved, 0);
}

/// The gather and the scatter of a layer have one name; a sum over ranks belongs to an op that is fused.
TEST(CompareVariants, ComparesACollectiveWithItself) {
  const auto collective = [](std::string kernel, double ns) {
    StepRecord record = step("fc.gather", {"fc"}, 12, {ns, ns, ns}, "backward");
    record.kernel = std::move(kernel);
    return record;
  };
  const StepRecord ranksSum = step("replicated_gradients", {"a"}, 5, {9, 9, 9}, "backward");
  StepRecord norms = fusedStep({"a", "b"}, 90, {3, 3, 3});
  norms.phase = "backward";
  RunRecord record;
  record.variants.push_back(
      {.name = "unfused",
       .steps = {collective("all-gather", 1), collective("reduce-scatter", 2),
                 step("a", {"a"}, 60, {4, 4, 4}, "backward"), step("b", {"b"}, 60, {1, 1, 1}, "backward"), ranksSum}});
  record.variants.push_back(
      {.name = "fused", .steps = {collective("all-gather", 1), collective("reduce-scatter", 2), norms, ranksSum}});
  const std::vector<ComparisonRow> rows = compareVariants(record).rows;
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_DOUBLE_EQ(rows[0].unfused.median, 1);
  EXPECT_DOUBLE_EQ(rows[1].unfused.median, 2);
  EXPECT_TRUE(rows[0].isInBoth && rows[1].isInBoth && rows[5].isInBoth);
  EXPECT_DOUBLE_EQ(rows[2].unfused.median, 5);
  EXPECT_EQ(rows[2].launchesSaved, 1);
}

TEST(CompareVariants, AddsTheOpsOfARoundBeforeTakingTheMedian) {
  // Every round's sum is 6; the sum of the medians would be 6 too, but the spread would not be 0.
  const ComparisonRow row = compareVariants(sampleRecord()).rows[0];
  EXPECT_DOUBLE_EQ(row.unfused.median, 6);
  EXPECT_DOUBLE_EQ(row.unfused.lowerQuartile, 6);
  EXPECT_DOUBLE_EQ(row.unfused.minimum, 6);
  EXPECT_DOUBLE_EQ(row.speedup.median, 2);
  EXPECT_TRUE(row.speedup.isSignificant());
}

TEST(CompareVariants, ClaimsNothingOfAStepThatBothPlansHave) {
  RunRecord record = sampleRecord();
  record.variants[1].steps[1].samplesNs.assign(7, 2.0);  // perhaps at another place in memory
  const ComparisonRow row = compareVariants(record).rows[3];
  EXPECT_TRUE(row.speedup.isSignificant());
  EXPECT_TRUE(row.isInBoth);
  EXPECT_FALSE(row.isClear());
}

TEST(CompareVariants, ComparesAStepThatAFusionChanged) {
  EXPECT_FALSE(compareVariants(sampleRecord()).rows[0].isInBoth);
  const auto isInBothAfter = [](const auto& change) {
    RunRecord record = sampleRecord();
    change(record.variants[1].steps[1]);
    return compareVariants(record).rows[3].isInBoth;
  };
  EXPECT_TRUE(isInBothAfter([](StepRecord&) {}));
  EXPECT_FALSE(isInBothAfter([](StepRecord& step) { step.kernel = "another"; }));
  EXPECT_FALSE(isInBothAfter([](StepRecord& step) { step.bytes = 8; }));
  EXPECT_FALSE(isInBothAfter([](StepRecord& step) { step.absorbs = {"c.quantize"}; }));
}

TEST(CompareVariants, CountsSavedBytesAndLaunches) {
  const Comparison comparison = compareVariants(sampleRecord());
  EXPECT_EQ(comparison.rows[0].bytesSaved, 60);
  EXPECT_EQ(comparison.rows[0].launchesSaved, 1);
  EXPECT_EQ(comparison.rows[3].bytesSaved, 0);
  EXPECT_EQ(comparison.sum.bytesSaved, 60);
  EXPECT_EQ(comparison.sum.launchesSaved, 1);
}

TEST(CompareVariants, DoesNotCountViewsAsLaunches) {
  RunRecord record = sampleRecord();
  record.variants[0].steps[1].isView = true;
  EXPECT_EQ(compareVariants(record).rows[0].launchesSaved, 0);
}

TEST(CompareVariants, GivesAPartNoFusedTime) {
  const Comparison comparison = compareVariants(sampleRecord());
  EXPECT_EQ(comparison.rows[1].fused.count, 0);
  EXPECT_EQ(comparison.rows[1].unfused.count, 7);
}

TEST(CompareVariants, SumsAllSteps) {
  const Comparison comparison = compareVariants(sampleRecord());
  EXPECT_DOUBLE_EQ(comparison.sum.unfused.median, 7);
  EXPECT_DOUBLE_EQ(comparison.sum.fused.median, 4);
  EXPECT_DOUBLE_EQ(comparison.endToEnd.speedup.median, 1.75);
}

TEST(CompareVariants, KeepsForwardAndBackwardOfAnOpApart) {
  RunRecord record = sampleRecord();
  record.variants[0].steps.push_back(step("a", {"a"}, 1, {9, 9, 9, 9, 9, 9, 9}, "backward"));
  record.variants[1].steps.push_back(step("a", {"a"}, 1, {9, 9, 9, 9, 9, 9, 9}, "backward"));
  const Comparison comparison = compareVariants(record);
  EXPECT_DOUBLE_EQ(comparison.rows[0].unfused.median, 6);
  EXPECT_EQ(comparison.rows.back().phase, "backward");
  EXPECT_DOUBLE_EQ(comparison.rows.back().unfused.median, 9);
}

TEST(CompareVariants, ShowsUnfusedStepsThatNoFusedEntryStandsFor) {
  RunRecord record = sampleRecord();
  record.variants[0].steps.push_back(step("grad.h", {}, 5, {1, 1, 1, 1, 1, 1, 1}, "backward"));
  const Comparison comparison = compareVariants(record);
  EXPECT_EQ(comparison.rows.back().label, "grad.h");
  EXPECT_EQ(comparison.rows.back().launchesSaved, 1);
  EXPECT_EQ(comparison.sum.launchesSaved, 2);
}

TEST(CompareVariants, MatchesGradientSumsByName) {
  RunRecord record = sampleRecord();
  for (VariantRecord& variant : record.variants)
    variant.steps.push_back(step("grad.h", {}, 5, {1, 1, 1, 1, 1, 1, 1}, "backward"));
  const Comparison comparison = compareVariants(record);
  ASSERT_EQ(comparison.rows.size(), 5u);
  EXPECT_EQ(comparison.rows.back().unfused.count, 7);
  EXPECT_EQ(comparison.rows.back().fused.count, 7);
}

TEST(CompareVariants, LeavesTheOtherColumnEmptyForOneVariant) {
  RunRecord record = sampleRecord();
  record.variants.erase(record.variants.begin());
  const Comparison comparison = compareVariants(record);
  ASSERT_EQ(comparison.rows.size(), 2u);
  EXPECT_EQ(comparison.rows[0].unfused.count, 0);
  EXPECT_EQ(comparison.rows[0].fused.count, 7);
  EXPECT_FALSE(comparison.endToEnd.speedup.isSignificant());
}

TEST(ColumnUnit, WritesNothingWithoutASign) {
  const ColumnUnit unit = byteUnitFor(8.0 * 1024 * 1024);
  EXPECT_EQ(unit.bytesOf(-4), "0.00");
  EXPECT_EQ(unit.bytesOf(-1024 * 1024), "-1.00");
  EXPECT_EQ(unit.bytesOf(1572864), "1.50");
}

}  // namespace
}  // namespace fuseline
