// Times on several ranks against the formulas of rings, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rank_prediction.h"

#include "core/document/file_format.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(RankLink, IsANameOrTwoNumbers) {
  const Result<RankLink> given = parseLink("5us,10GB/s");
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(given->protocols.front().hopUs, 5.0);
  EXPECT_EQ(given->protocols.front().bandwidthGBps, 10.0);
  EXPECT_TRUE(parseLink("nvlink4"));
  for (const char* text : {"", "nvlink", "5us", "5us,10GB/s,", "-1us,10GB/s", "5us,0GB/s", "nanus,10GB/s"})
    EXPECT_FALSE(parseLink(text)) << text;
  EXPECT_EQ(parseLink("slow").error().message,
            "--link slow: expected nvlink4, pcie5, or a latency and bandwidths of the link and of memory, such as "
            "5us,100GB/s,20GB/s.");
}

// A ring of 4: 3 hops for an all-gather, 6 for an all-reduce. 100 MB at 10 GB/s are 10 ms.
TEST(CollectiveTime, IsHopsAndBytes) {
  const RankLink link = *parseLink("1000us,10GB/s");
  const TimeRange gather = collectiveTime(link, "all-gather", 100e6, 4);
  EXPECT_DOUBLE_EQ(gather.lowNs, 0.85 * 13e6);
  EXPECT_DOUBLE_EQ(gather.highNs, 1.15 * 13e6);
  EXPECT_DOUBLE_EQ(collectiveTime(link, "all-reduce", 10e6, 4).highNs, 1.3 * 7e6);
  // On the CPU a rank then adds four slices.
  EXPECT_DOUBLE_EQ(collectiveTime(*parseLink("1000us,10GB/s,10GB/s"), "reduce-scatter", 30e6, 4).highNs,
                   1.3 * (3e6 + 3e6 + 5e6));
  EXPECT_EQ(collectiveTime(*parseLink("1000us,10GB/s,10GB/s"), "all-gather", 100e6, 4).highNs, gather.highNs);
  const TimeRange small = collectiveTime(*parseLink("5us,10GB/s"), "reduce-scatter", 1000, 2);
  EXPECT_EQ(small.lowNs, 0.0);
  EXPECT_DOUBLE_EQ(small.highNs, 5000.0 + 100.0 + 10000.0);
}

// The table of NCCL's model in the literature: 67.1 MB gathered by 8 GPUs of one node take 32.2 + 159 us.
TEST(CollectiveTime, OfNvlinkIsThatOfNccl) {
  const TimeRange range = collectiveTime(*parseLink("nvlink4"), "all-gather", 67.1e6 * 7 / 8, 8);
  const double middleNs = 0.5 * (range.lowNs + range.highNs);
  EXPECT_NEAR(middleNs, 191e3, 3e3);
}

/// fc1 gathers its input, fc2 scatters its output.
Analysis analysisOfTwoRanks() {
  const auto example = loadDocument(FUSELINE_SOURCE_DIR "/resources/examples/tensor_parallel_mlp.fuseline");
  return analyze(example->document, {.place = {.ranks = 2}});
}

/// Every step that computes takes 100 us, every collective 80 us.
std::vector<StepTime> evenTimes(const Plan& plan) {
  std::vector<StepTime> times;
  for (const Step& step : plan.steps) {
    if (!step.collective)
      times.push_back({.computeNs = step.isWork() ? 100e3 : 0.0});
    else if (step.collective->isWait())
      times.emplace_back();
    else
      times.push_back({.communication = {80e3, 80e3}, .latencyNs = 8e3});
  }
  return times;
}

const OverlapEstimate& estimateOf(const Plan& plan, const std::vector<OverlapEstimate>& estimates,
                                  std::string_view name, Phase phase, CollectiveKind kind) {
  for (std::size_t index = 0; index < plan.steps.size(); ++index) {
    const Step& step = plan.steps[index];
    if (step.name == name && step.phase == phase && step.collective && step.collective->kind == kind)
      return estimates[index];
  }
  throw std::runtime_error("no such collective");
}

// The ring of two ranks has one transfer, which runs during half of the GEMM. A quarter of a reduce-scatter, 8 us and a
// quarter of 72 us, is exposed, and 1 us of each other quarter, which takes longer than that of the GEMM.
TEST(OverlapEstimate, KnowsWhatThePlanAndUserbuffersHide) {
  const Analysis analysis = analysisOfTwoRanks();
  ASSERT_TRUE(analysis.isRunnable());
  const Plan& plan = analysis.unfusedPlan();
  const std::vector<OverlapEstimate> estimates = estimateOverlap(plan, analysis.graph(), 2, evenTimes(plan));
  const auto at = [&](std::string_view name, Phase phase, CollectiveKind kind) {
    return estimateOf(plan, estimates, name, phase, kind);
  };
  const OverlapEstimate gather = at("fc1.linear.gather", Phase::Forward, CollectiveKind::AllGather);
  EXPECT_DOUBLE_EQ(gather.hidden.lowNs, 0.0);
  EXPECT_DOUBLE_EQ(gather.userbuffers.lowNs, 50e3);
  const OverlapEstimate scatter = at("fc2.sum", Phase::Forward, CollectiveKind::ReduceScatter);
  EXPECT_DOUBLE_EQ(scatter.userbuffers.highNs, 80e3 - 26e3 - 3 * 1e3);
  const OverlapEstimate dgrad = at("fc1.linear.gather", Phase::Backward, CollectiveKind::ReduceScatter);
  EXPECT_DOUBLE_EQ(dgrad.hidden.lowNs, 80e3);  // during wgrad
  EXPECT_DOUBLE_EQ(dgrad.userbuffers.lowNs, 0.0);
  EXPECT_DOUBLE_EQ(dgrad.exposed().highNs, 0.0);
}

TEST(Prediction, AddsComputingAndExposedCommunication) {
  const Analysis analysis = analysisOfTwoRanks();
  ASSERT_TRUE(analysis.fusedPlan);
  RunRecord rank0;
  rank0.settings.ranks = 2;
  VariantRecord& fused = rank0.variants.emplace_back(VariantRecord{.name = "fused"});
  double computeNs = 0.0;
  std::int64_t bytes = 0;
  for (const Step& step : analysis.fusedPlan->steps) {
    StepRecord& record = fused.steps.emplace_back(StepRecord{.name = step.name, .kernel = step.kernel});
    if (step.collective) {
      record.collective = collectiveName(step.collective->kind);
      record.wireBytes = record.exchanges() ? 1000 : 0;
      bytes += record.wireBytes;
    } else if (step.isWork()) {
      record.samplesNs = {10e3, 20e3, 30e3};
      computeNs += 20e3;
    }
  }
  const std::vector<RankPrediction> predictions = predict(rank0, analysis, *parseLink("50us,10GB/s"));
  ASSERT_EQ(predictions.size(), 1u);
  const RankPrediction& made = predictions.front();
  EXPECT_DOUBLE_EQ(made.computeNs, computeNs);
  EXPECT_EQ(made.wireBytes, bytes);
  EXPECT_GT(made.overlap.hidden.lowNs, 0.0);
  EXPECT_DOUBLE_EQ(made.total().highNs,
                   made.compute.highNs + made.overlap.communication.highNs - made.overlap.hidden.highNs);
}

}  // namespace
}  // namespace fuseline
