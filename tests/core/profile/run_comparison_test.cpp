// Two runs side by side: the compared metrics, and when a gate fails.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_comparison.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

/// Ten rounds around this time, a per mille apart.
std::vector<double> around(double timeNs) {
  std::vector<double> samples;
  for (int i = -5; i < 5; ++i) samples.push_back(timeNs * (1.0 + i / 1000.0));
  return samples;
}

StepRecord step(const char* name, double timeNs, const char* phase = "forward") {
  return {.name = name, .phase = phase, .samplesNs = around(timeNs)};
}

RunRecord runOf(double unfusedNs, double fusedNs, std::vector<StepRecord> steps) {
  RunRecord record{.pipelineName = "mlp", .environment = {{"device", "NVIDIA H200"}, {"measured at", "noon"}}};
  record.variants.push_back({.name = "unfused", .endToEndNs = around(unfusedNs)});
  record.variants.push_back(
      {.name = "fused", .steps = std::move(steps), .endToEndNs = around(fusedNs), .peakBytes = 1000, .launches = 4});
  return record;
}

RunComparison compared(const RunRecord& base, const RunRecord& next) { return *compareRuns(base, next); }

const MetricChange& total(const RunComparison& comparison, const char* name) {
  return *std::ranges::find(comparison.totals, name, &MetricChange::name);
}

TEST(CompareRuns, PutsTotalsAndStepsBesideEachOther) {
  const RunComparison comparison = compared(runOf(200, 100, {step("a", 60), step("b", 40), step("a", 10, "backward")}),
                                            runOf(200, 80, {step("a", 30), step("c", 50), step("a", 10, "backward")}));
  EXPECT_EQ(comparison.variant, "fused");
  EXPECT_NEAR(total(comparison, "median").change.median, 0.8, 1e-9);
  EXPECT_TRUE(total(comparison, "median").change.isSignificant());
  EXPECT_NEAR(total(comparison, "speedup").base.median, 2.0, 1e-9);
  EXPECT_NEAR(total(comparison, "speedup").next.median, 2.5, 1e-9);
  EXPECT_FALSE(total(comparison, "unfused").change.isSignificant());
  EXPECT_EQ(total(comparison, "launches").change.median, 1.0);
  ASSERT_EQ(comparison.steps.size(), 4u);
  EXPECT_NEAR(comparison.steps[0].change.median, 0.5, 1e-9);
  EXPECT_EQ(comparison.steps[1].name, "c");
  EXPECT_EQ(comparison.steps[1].base.count, 0) << "new";
  EXPECT_EQ(comparison.steps[2].phase, "backward");
  EXPECT_EQ(comparison.steps[3].name, "b");
  EXPECT_EQ(comparison.steps[3].next.count, 0) << "gone";
}

TEST(CompareRuns, TellsWhatGrewFromNothing) {
  RunRecord base = runOf(200, 100, {});
  RunRecord next = base;
  next.variants[1].savedForBackwardBytes = 1 << 20;
  const RunComparison comparison = compared(base, next);
  EXPECT_EQ(changeText(total(comparison, "saved")), "from 0");
  EXPECT_FALSE(check(*parseGate("saved>+0%"), comparison)->isMet);
  EXPECT_EQ(changeText(total(compared(base, base), "saved")), "same");
  EXPECT_TRUE(check(*parseGate("saved>+0%"), compared(base, base))->isMet);
  EXPECT_EQ(changeText(total(compared(next, base), "saved")), "-100.0 %");
}

/// A machine that gets slower and slower hides a change of 2 % from medians, but not from interleaved rounds.
TEST(CompareRuns, ComparesRoundByRoundWhatTookTurns) {
  RunRecord base = runOf(200, 100, {step("a", 60)});
  RunRecord next = base;
  const auto drifting = [](double timeNs) {
    std::vector<double> samples;
    for (int i = 0; i < 12; ++i) samples.push_back(timeNs * (1.0 + 0.1 * i));
    return samples;
  };
  for (const auto& [record, scale] : {std::pair(&base, 1.0), {&next, 1.02}}) {
    record->variants[1].endToEndNs = drifting(100 * scale);
    record->variants[1].steps[0].samplesNs = drifting(60 * scale);
  }
  EXPECT_FALSE(compared(base, next).isPaired);
  EXPECT_FALSE(total(compared(base, next), "median").change.isSignificant());
  base.roundsId = next.roundsId = "1";
  const RunComparison paired = compared(base, next);
  EXPECT_TRUE(paired.isPaired);
  EXPECT_TRUE(total(paired, "median").change.isSignificant());
  EXPECT_NEAR(total(paired, "median").change.low, 1.02, 1e-9);
  EXPECT_TRUE(paired.steps[0].change.isSignificant());
  next.roundsId = "2";
  EXPECT_FALSE(compared(base, next).isPaired);
}

TEST(CompareRuns, NamesWhatIsNotTheSameAndNotWhatChangesAnyway) {
  const RunRecord base = runOf(2, 1, {});
  RunRecord next = base;
  next.environment = {{"device", "NVIDIA H100"}, {"measured at", "midnight"}, {"driver", "580"}};
  next.settings.symbols = {{"M", 4}};
  next.settings.recipe = "DelayedScaling";
  next.switches.without = {"R@a", "S"};
  std::vector<std::string> names;
  for (const auto& difference : compared(base, next).differences) names.push_back(difference.what);
  EXPECT_EQ(names, (std::vector<std::string>{"device", "recipe", "without rules", "symbol M", "driver"}));
  EXPECT_TRUE(compared(base, base).differences.empty());
  EXPECT_FALSE(compared(base, next).isOneDevice());
}

std::vector<std::string> differencesOf(const RunRecord& base, const RunRecord& next) {
  std::vector<std::string> texts;
  for (const auto& each : compared(base, next).differences)
    texts.push_back(each.what + ": " + each.base + " -> " + each.next);
  return texts;
}

/// The hash is of all of it.
TEST(CompareRuns, TellsSymbolsFromThePipeline) {
  RunRecord base = runOf(2, 1, {});
  base.pipelineHash = "1";
  base.pipeline = {{"symbols", {{"M", 8}, {"F", "4*M"}}}, {"pipeline", {{"ops", {"a"}}}}, {"view", {{"x", 1}}}};
  RunRecord next = base;
  next.pipelineHash = "2";
  next.pipeline["symbols"]["M"] = 16;
  next.pipeline["view"]["x"] = 2;
  EXPECT_EQ(differencesOf(base, next), (std::vector<std::string>{"symbol M: 8 -> 16"}));
  next.settings.symbols = {{"M", 8}};
  EXPECT_EQ(differencesOf(base, next), (std::vector<std::string>{}));
  next.pipeline["pipeline"]["ops"].push_back("b");
  next.pipeline["symbols"].erase("F");
  EXPECT_EQ(differencesOf(base, next), (std::vector<std::string>{"pipeline: 1 -> 2", "symbol F: \"4*M\" -> "}));
}

TEST(CompareRuns, NamesTheOpsOfAPipelineThatAreNotTheSame) {
  const auto pipelineOf = [](const char* op) {
    return Json{{"format", "fuseline-pipeline"},
                {"formatVersion", {{"major", 1}, {"minor", 0}}},
                {"pipeline", {{"inputs", Json::array()}, {"ops", {{{"id", "act"}, {"op", op}}}}}}};
  };
  RunRecord base = runOf(2, 1, {});
  base.pipeline = pipelineOf("GELU");
  RunRecord next = base;
  next.pipeline = pipelineOf("SiLU");
  EXPECT_EQ(differencesOf(base, next), (std::vector<std::string>{"op act op: \"GELU\" -> \"SiLU\""}));
}

TEST(CompareRuns, NamesTheFieldsOfARecipeThatAreNotTheSame) {
  RunRecord base = runOf(2, 1, {});
  base.settings.recipe = "DelayedScaling";
  base.recipe = {{"name", "DelayedScaling"}, {"fields", {{"margin", 0}, {"reduce_amax", true}}}};
  RunRecord next = base;
  next.recipe["fields"]["margin"] = 2;
  next.recipe["overrides"] = {1};
  EXPECT_EQ(differencesOf(base, next),
            (std::vector<std::string>{"recipe margin: 0 -> 2", "recipe overrides: null -> [1]"}));
  next.settings.recipe = "None";
  next.recipe = nullptr;
  EXPECT_EQ(differencesOf(base, next), (std::vector<std::string>{"recipe: DelayedScaling -> None"}));
}

TEST(CompareRuns, RefusesRunsWithoutAVariantInCommon) {
  RunRecord fused = runOf(2, 1, {});
  RunRecord unfused = fused;
  fused.variants.erase(fused.variants.begin());
  unfused.variants.pop_back();
  const Result<RunComparison> comparison = compareRuns(fused, unfused);
  ASSERT_FALSE(comparison);
  EXPECT_NE(comparison.error().message.find("one run has only the fused plan"), std::string::npos);
  EXPECT_EQ(compared(unfused, unfused).variant, "unfused");
}

GateResult checked(const char* gate, const RunComparison& comparison) {
  const Result<GateResult> result = check(*parseGate(gate), comparison);
  if (!result) throw std::runtime_error(result.error().message);
  return *result;
}

TEST(Gates, FailBeyondTheirLimitOnly) {
  const RunComparison slower =
      compared(runOf(200, 100, {step("a", 50), step("b", 50)}), runOf(200, 104, {step("a", 49), step("b", 55)}));
  EXPECT_TRUE(checked("median>+5%", slower).isMet);
  EXPECT_FALSE(checked("median>+3%", slower).isMet);
  EXPECT_FALSE(checked("p50>3%", slower).isMet);
  EXPECT_FALSE(checked("speedup<-2%", slower).isMet);
  EXPECT_TRUE(checked("speedup<-5%", slower).isMet);
  EXPECT_FALSE(checked("step>+9%", slower).isMet);
  EXPECT_EQ(checked("step>+9%", slower).sentence.substr(0, 11), "b (forward)");
  EXPECT_TRUE(checked("step>+11%", slower).isMet);
  EXPECT_TRUE(checked("peak>+0%", slower).isMet);
}

TEST(Gates, DoNotFailByChance) {
  RunRecord base = runOf(200, 100, {});
  RunRecord noisy = base;
  noisy.variants[1].endToEndNs = {60, 150, 70, 160, 115, 65, 155, 75, 140, 120};
  const RunComparison comparison = compared(base, noisy);
  EXPECT_GT(total(comparison, "median").change.median, 1.05);
  const GateResult result = checked("median>+5%", comparison);
  EXPECT_TRUE(result.isMet);
  EXPECT_TRUE(result.sentence.ends_with("which is not significant")) << result.sentence;
}

TEST(Gates, OnTimesNeedAFewRounds) {
  RunRecord base = runOf(200, 100, {});
  RunRecord next = runOf(200, 1000, {});
  for (RunRecord* record : {&base, &next})
    for (VariantRecord& variant : record->variants) variant.endToEndNs.resize(5);
  const Result<GateResult> result = check(*parseGate("median>+5%"), compared(base, next));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "--fail-if \"median>+5%\": 5 and 5 rounds are too few for statistical significance. Run both with "
            "--iterations 6 or more.");
}

TEST(Gates, OnCountsNeedNoSamples) {
  const RunRecord base = runOf(2, 1, {});
  RunRecord next = base;
  next.variants[1].launches = 5;
  EXPECT_FALSE(checked("launches>+0%", compared(base, next)).isMet);
  EXPECT_EQ(checked("launches>+0%", compared(base, next)).sentence, "launches: 4 to 5, +25.0 %");
}

TEST(Gates, OnTimesOfTwoDevicesAreRefusedAndOnSpeedUpsNot) {
  const RunRecord base = runOf(200, 100, {});
  RunRecord next = runOf(200, 150, {});
  next.environment[0].second = "NVIDIA H100";
  const RunComparison comparison = compared(base, next);
  EXPECT_FALSE(check(*parseGate("median>+5%"), comparison));
  EXPECT_FALSE(check(*parseGate("step>+5%"), comparison));
  EXPECT_FALSE(checked("speedup<-5%", comparison).isMet);
}

TEST(Gates, SayWhatOfATextIsWrong) {
  const auto problem = [](const char* text) { return parseGate(text).error().message; };
  EXPECT_EQ(problem("median"),
            "--fail-if \"median\": expected > or <, found neither. Expected a condition such as \"median>+5%\" or "
            "\"speedup<-5%\".");
  EXPECT_NE(problem("mean>+5%").find("found \"mean\""), std::string::npos);
  EXPECT_NE(problem("median>5").find("expected a percentage"), std::string::npos);
  EXPECT_NE(problem("median>five%").find("found \"five%\""), std::string::npos);
}

TEST(Gates, AreReadOrRefusedWhateverTheText) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    const Result<Gate> gate = parseGate(text);
    RC_ASSERT((gate.hasValue() || gate.error().kind == ErrorKind::Usage));
  }));
  EXPECT_TRUE(rc::check([] {
    const int percent = *rc::gen::inRange(-90, 500);
    const bool isAbove = *rc::gen::arbitrary<bool>();
    const Gate gate = *parseGate("peak" + std::string(isAbove ? ">" : "<") + (percent > 0 ? "+" : "") +
                                 std::to_string(percent) + "%");
    RC_ASSERT(gate.percent == percent);
    RC_ASSERT(gate.isAbove == isAbove);
  }));
}

}  // namespace
}  // namespace fuseline
