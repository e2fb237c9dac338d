// The least time of work at a device's peaks, and the share that steps reach. Expected values are computed by hand.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/roofline.h"

#include "tests/support/pipelines.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

const DevicePeaks kPeaks{.copyGBps = 10, .fmaF32Gflops = 5, .bf16Gflops = 20, .fp8Gflops = 0};

StepRecord step(std::string name, Arithmetic arithmetic, std::int64_t flops, std::int64_t bytes, double timeNs) {
  return {.name = std::move(name),
          .phase = "forward",
          .arithmetic = arithmetic,
          .flops = flops,
          .bytes = bytes,
          .samplesNs = {timeNs, timeNs, timeNs}};
}

/// Efficiency of all steps together.
Efficiency efficiencyOf(const VariantRecord& variant, const std::optional<DevicePeaks>& peaks = kPeaks) {
  RunRecord record;
  record.peaks = peaks;
  Steps steps;
  for (const StepRecord& each : variant.steps) steps.push_back(&each);
  return Roofline(record, variant).of(steps);
}

TEST(Roofline, TakesTheNearerOfTwoPeaks) {
  const auto leastOf = [&](Arithmetic arithmetic, double flops, double bytes) {
    return leastTimeNs({{.arithmetic = arithmetic, .flops = flops, .bytes = bytes}}, kPeaks);
  };
  EXPECT_DOUBLE_EQ(leastOf(Arithmetic::F32, 100, 100), 20.0);
  EXPECT_DOUBLE_EQ(leastOf(Arithmetic::Bf16, 100, 100), 10.0);
  EXPECT_DOUBLE_EQ(leastOf(Arithmetic::Fp8, 400, 100), 20.0) << "without an arithmetic for it, that of bf16";
  EXPECT_DOUBLE_EQ(leastOf(Arithmetic::None, 400, 100), 0.0) << "a link has no peak here";
  EXPECT_DOUBLE_EQ(leastTimeNs({{.bytes = 100}}, DevicePeaks{}), 0.0) << "no peaks";
}

TEST(Roofline, SaysHowFarAStepIsFromWhichPeak) {
  const Efficiency product = efficiencyOf({.steps = {step("fc", Arithmetic::Bf16, 6000, 100, 600)}});
  EXPECT_DOUBLE_EQ(product.intensity(), 60);
  EXPECT_NEAR(product.gbps(), 1.0 / 6, 1e-12);
  EXPECT_DOUBLE_EQ(product.gflops(), 10);
  EXPECT_DOUBLE_EQ(product.leastNs, 300);
  EXPECT_DOUBLE_EQ(product.timesFromRoofline(), 2);
  EXPECT_EQ(product.boundName(), "bf16 compute");
  const Efficiency norm = efficiencyOf({.steps = {step("norm", Arithmetic::F32, 10, 100, 5)}});
  EXPECT_DOUBLE_EQ(norm.timesFromRoofline(), 0.5) << "a cache is faster than the memory that was measured";
  EXPECT_EQ(norm.boundName(), "memory");
}

TEST(Roofline, KnowsTheRatesButNoBoundWithoutPeaks) {
  const Efficiency made = efficiencyOf({.steps = {step("fc", Arithmetic::Bf16, 6000, 100, 600)}}, std::nullopt);
  EXPECT_DOUBLE_EQ(made.gflops(), 10);
  EXPECT_EQ(made.timesFromRoofline(), 0);
  EXPECT_EQ(made.boundName(), "");
  EXPECT_TRUE(toJson(made)["timesFromRoofline"].is_null());
  EXPECT_TRUE(toJson(efficiencyOf({})).is_null());
}

TEST(Roofline, AddsUpStepByStep) {
  StepRecord view = step("view", Arithmetic::F32, 0, 1000000, 0);
  view.isView = true;
  const Efficiency sum = efficiencyOf(
      {.steps = {step("fc", Arithmetic::Bf16, 6000, 100, 600), view, step("act", Arithmetic::F32, 10, 100, 20)}});
  EXPECT_DOUBLE_EQ(sum.timeNs, 620);
  EXPECT_DOUBLE_EQ(sum.leastNs, 310) << "300 for the product, 10 for the bytes: nothing overlaps";
  EXPECT_EQ(sum.boundName(), "several");
}

TEST(Roofline, KnowsNoLeastTimeOfAWholeWithAPartThatHasNone) {
  const Efficiency sum = efficiencyOf(
      {.steps = {step("fc", Arithmetic::Bf16, 6000, 100, 600), step("to the host", Arithmetic::None, 0, 100, 50)}});
  EXPECT_DOUBLE_EQ(sum.timeNs, 650);
  EXPECT_EQ(sum.timesFromRoofline(), 0);
}

TEST(Roofline, SeesStepsThatWaitForTheHost) {
  VariantRecord variant{.steps = {step("a", Arithmetic::F32, 0, 100, 600), step("b", Arithmetic::F32, 0, 100, 100)},
                        .launches = 2};
  const auto boundOf = [&](std::size_t index) {
    return Roofline(RunRecord{.peaks = kPeaks}, variant).of({&variant.steps[index]}).boundName();
  };
  variant.launchNs = {1000, 1000, 1000};
  EXPECT_EQ(boundOf(0), "memory") << "longer than 500 ns, the host's mean";
  EXPECT_EQ(boundOf(1), "host launch");
  variant.launchNs = {699, 699, 699};
  EXPECT_EQ(boundOf(1), "memory") << "the device takes 700 ns: the host is ahead";
}

/// From mark to mark steps last at least as long as their launches, so that sums say nothing.
TEST(Roofline, SeesWhichStepsTheDeviceWaitedWith) {
  VariantRecord variant{
      .steps = {step("a", Arithmetic::F32, 0, 100, 600), step("b", Arithmetic::F32, 0, 100, 100)},
      .launchNs = {690, 690, 690},
      .launching = "step by step: no recorder is left.",
      .timeline = {.spans = {{.step = 0, .durationNs = 600}, {.step = 1, .startNs = 600, .durationNs = 100}},
                   .launches = {{.step = 0, .durationNs = 5}, {.step = 1, .startNs = 5, .durationNs = 680}}},
      .launches = 2};
  const auto boundOf = [&](std::size_t index) {
    return Roofline(RunRecord{.peaks = kPeaks}, variant).of({&variant.steps[index]}).boundName();
  };
  EXPECT_EQ(boundOf(0), "memory");
  EXPECT_EQ(boundOf(1), "host launch") << "it waited 85 of its 100 ns";
  variant.launching = "captured and replayed";
  EXPECT_EQ(boundOf(1), "memory") << "what was timed step by step is not how it is launched";
}

std::vector<Arithmetic> arithmeticsOf(const Graph& graph) {
  std::vector<Arithmetic> arithmetics;
  for (const StepWork& work : workOf(graph, makePlan(graph, unfused(graph)))) arithmetics.push_back(work.arithmetic);
  return arithmetics;
}

TEST(Roofline, HoldsProductsAgainstThePeakOfTheirDtype) {
  using testing::chain;
  const auto ofLinearAndGelu = [](DType dtype, const char* recipe) {
    return arithmeticsOf(chain(dtype, {32, 32}, {testing::linear(32), testing::link("GELU")},
                               {.pass = ExecutionMode::Inference, .recipe = recipe}));
  };
  EXPECT_EQ(ofLinearAndGelu(DType::F32, ""), (std::vector{Arithmetic::F32, Arithmetic::F32}));
  EXPECT_EQ(ofLinearAndGelu(DType::BF16, ""), (std::vector{Arithmetic::Bf16, Arithmetic::F32}));
  EXPECT_EQ(ofLinearAndGelu(DType::F16, ""), (std::vector{Arithmetic::Bf16, Arithmetic::F32}));
  EXPECT_EQ(ofLinearAndGelu(DType::BF16, "Float8CurrentScaling").back(), Arithmetic::F32);
  EXPECT_EQ(std::ranges::count(ofLinearAndGelu(DType::BF16, "Float8CurrentScaling"), Arithmetic::Fp8), 1)
      << "the product; quantizing is no product";
}

TEST(Roofline, HoldsABackwardInHighPrecisionAgainstItsOwnPeak) {
  const auto numFp8 = [](const char* backward) {
    Attributes fields;
    fields.set("backward_override", std::string(backward));
    return std::ranges::count(arithmeticsOf(testing::chain(DType::BF16, {32, 32}, {testing::linear(32)},
                                                           {.recipe = "Float8CurrentScaling", .recipeFields = fields})),
                              Arithmetic::Fp8);
  };
  EXPECT_EQ(numFp8("none"), 2);
  EXPECT_EQ(numFp8("high_precision"), 1);
}

}  // namespace
}  // namespace fuseline
