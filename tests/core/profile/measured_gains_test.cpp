// Gains of fusions from a run, and the pipelines for which they hold.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/measured_gains.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

const std::string kPlace = "R(a, b)";

StepRecord step(std::string name, std::vector<std::string> ops, std::vector<double> samples, std::int64_t bytes = 0) {
  return {.name = std::move(name),
          .phase = "forward",
          .ops = std::move(ops),
          .bytes = bytes,
          .samplesNs = std::move(samples)};
}

/// a and b take 4 + 2 ns; fused they take the given times. Eight rounds.
RunRecord run(std::vector<double> fusedNs) {
  RunRecord record{.environment = {{"device", "a test device"}}};
  StepRecord fused = step(kPlace, {"a", "b"}, std::move(fusedNs), 90);
  fused.rule = "R";
  record.variants.push_back(
      {.name = "unfused",
       .steps = {step("a", {"a"}, {4, 4, 4, 4, 4, 4, 4, 4}, 100), step("b", {"b"}, {2, 2, 2, 2, 2, 2, 2, 2}, 20)}});
  record.variants.push_back({.name = "fused", .steps = {std::move(fused)}});
  record.pipeline = {{"symbols", {{"M", 8}}}, {"pipeline", {{"ops", {"a", "b"}}}}, {"view", {{"zoom", 1}}}};
  return record;
}

MeasuredGain gainAt(const RunRecord& record) { return *gainsOf(record, "run.json")->measured.at(kPlace); }

TEST(MeasuredGains, AreTheOpsMinusTheirFusion) {
  const MeasuredGain gain = gainAt(run({5, 5, 5, 5, 5, 5, 5, 5}));
  EXPECT_DOUBLE_EQ(gain.gainNs, 1.0);
  EXPECT_DOUBLE_EQ(gain.speedup, 1.2);
  EXPECT_TRUE(gain.isFaster());
  EXPECT_EQ(gain.device, "a test device");
}

TEST(MeasuredGains, ASlowerFusionIsNegativeAndBeyondItsSpread) {
  const MeasuredGain gain = gainAt(run({8, 8, 8, 8, 8, 8, 8, 8}));
  EXPECT_DOUBLE_EQ(gain.gainNs, -2.0);
  EXPECT_TRUE(gain.isSlower());
}

TEST(MeasuredGains, NoiseIsNeitherFasterNorSlower) {
  const MeasuredGain gain = gainAt(run({5, 7, 5, 7, 5, 7, 5, 7}));
  EXPECT_FALSE(gain.isFaster());
  EXPECT_FALSE(gain.isSlower());
}

TEST(MeasuredGains, TooFewRoundsClaimNothing) {
  const MeasuredGain gain = gainAt(run({8, 8}));
  EXPECT_FALSE(gain.isSlower());
}

TEST(MeasuredGains, TheDeviceMovesWhatItsFastestStepMoved) {
  // a: 100 bytes in 4 ns are 25 GB/s; b: 20 bytes in 2 ns are 10.
  const Result<GainModel> gains = gainsOf(run({5, 5}), "run.json");
  EXPECT_DOUBLE_EQ(gains->device.bandwidthBytesPerSecond, 25e9);
  EXPECT_EQ(gains->device.launchSeconds, 0.0);
  EXPECT_EQ(gains->device.source, "the fastest step of run.json, a (forward), on a test device");
}

TEST(MeasuredGains, NeedTheTimesOfSteps) {
  RunRecord record = run({5, 5});
  record.settings.timing = StepTiming::None;
  const Result<GainModel> gains = gainsOf(record, "run.json");
  ASSERT_FALSE(gains);
  EXPECT_EQ(gains.error().message,
            "run.json: expected step times, found only end-to-end times. Run without --timing none.");
}

TEST(MeasuredGains, NeedBothVariants) {
  RunRecord record = run({5, 5});
  record.variants.pop_back();
  const Result<GainModel> gains = gainsOf(record, "run.json");
  ASSERT_FALSE(gains);
  EXPECT_EQ(
      gains.error().message,
      "run.json: expected the unfused and the fused variant, found only the unfused one. Run without --variants.");
}

TEST(MeasuredGains, ALaterRunReplacesAnEarlierOneAtItsPlaces) {
  GainModel gains = std::move(*gainsOf(run({8, 8, 8, 8, 8, 8, 8, 8}), "old.json"));
  merge(gains, std::move(*gainsOf(run({5, 5, 5, 5, 5, 5, 5, 5}), "new.json")));
  EXPECT_DOUBLE_EQ(gains.measured.at(kPlace)->gainNs, 1.0);
}

/// The sentence for what differs; empty when nothing does.
std::string difference(const Json& pipeline, const RunSpec& settings = {}) {
  const Verdict verdict = measuredSame(run({5, 5}), pipeline, settings, {});
  return verdict ? "" : verdict.reason();
}

/// One name is not one quantization.
TEST(MeasuredSame, TellsRecipesOfOneNameApart) {
  RunRecord record = run({5, 5});
  record.settings.recipe = "DelayedScaling";
  record.recipe = {{"name", "DelayedScaling"}, {"margin", 1}};
  const RunSpec settings{.recipe = "DelayedScaling"};
  EXPECT_TRUE(measuredSame(record, record.pipeline, settings, record.recipe));
  const Verdict other = measuredSame(record, record.pipeline, settings, {{"name", "DelayedScaling"}, {"margin", 2}});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.reason(), "it was measured with other fields or overrides of the recipe DelayedScaling.");
  record.recipe = nullptr;  // of an older program
  EXPECT_TRUE(measuredSame(record, record.pipeline, settings, {{"name", "DelayedScaling"}, {"margin", 2}}));
  record.settings.recipeFields = {{"margin", "1"}};
  EXPECT_FALSE(measuredSame(record, record.pipeline, settings, {{"name", "DelayedScaling"}, {"margin", 2}}));
}

TEST(MeasuredSame, NeitherTheViewNorTheChoiceOfFusionsMatters) {
  Json pipeline = run({5, 5}).pipeline;
  pipeline["view"] = nullptr;
  pipeline["fusion"] = {{"without", {"R"}}};
  EXPECT_EQ(difference(pipeline), "");
}

TEST(MeasuredSame, NamesWhatDiffers) {
  const Json pipeline = run({5, 5}).pipeline;
  Json other = pipeline;
  other["pipeline"]["ops"].push_back("c");
  EXPECT_EQ(difference(other), "it measured another pipeline, or this one before it was changed.");
  EXPECT_EQ(difference(pipeline, {.symbols = {{"M", 16}}}), "it was measured with M = 8, but here M is 16.");
  EXPECT_EQ(difference(pipeline, {.device = "sm_90"}), "it was measured with device cpu, but here it is sm_90.");
  other = pipeline;
  other["symbols"] = Json::array();  // in a file that was edited by hand
  EXPECT_EQ(difference(other, {.symbols = {{"M", 16}}}), "it was measured with M = 8, but here M is 16.");
  EXPECT_EQ(difference(pipeline, {.pass = ExecutionMode::Inference}),
            "it was measured with pass train, but here it is forward.");
}

}  // namespace
}  // namespace fuseline
