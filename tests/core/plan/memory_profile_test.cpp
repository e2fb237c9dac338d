// Memory in use at each step, and tensors that forward keeps: by hand for a small pipeline, and as invariants for all.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory_profile.h"

#include "core/document/file_format.h"
#include "core/plan/analysis.h"
#include "core/quant/recipe.h"
#include "tests/support/random_pipelines.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline::testing {
namespace {

std::vector<std::int64_t> totalsOf(const MemoryProfile& profile) {
  std::vector<std::int64_t> totals;
  for (const StepMemory& memory : profile.steps) totals.push_back(memory.total());
  return totals;
}

std::vector<std::int64_t> bytesFor(const MemoryProfile& profile, MemoryPurpose purpose) {
  std::vector<std::int64_t> bytes;
  for (const StepMemory& memory : profile.steps) bytes.push_back(memory.of(purpose));
  return bytes;
}

std::string nameOf(const KeptTensor& kept, const Plan& plan) {
  return plan.tensors[static_cast<std::size_t>(kept.tensor)].name;
}

/// x and its gradient 128 bytes each, y and its gradient 64; weights 512 and 256, and the same for their gradients;
/// tensors between the ops are 256 bytes.
TEST(MemoryProfile, OfASmallPipelineIsWhatPaperAndPencilSay) {
  const Graph graph = chain(DType::F32, {4, 8}, {linear(16, "fc"), link("GELU", "act"), linear(4, "out")});
  const Plan plan = makePlan(graph, unfused(graph));
  const MemoryProfile profile = memoryProfile(plan);
  constexpr std::int64_t kAlways = 2 * (512 + 256) + 2 * (128 + 64);
  EXPECT_EQ(totalsOf(profile), (std::vector<std::int64_t>{kAlways + 256, kAlways + 512, kAlways + 512, kAlways + 768,
                                                          kAlways + 512, kAlways + 256}));
  EXPECT_EQ(profile.peak, 3u);
  EXPECT_EQ(profile.peakBytes(), kAlways + 768);
  for (const StepMemory& memory : profile.steps) {
    EXPECT_EQ(memory.of(MemoryPurpose::Parameters), 768);
    EXPECT_EQ(memory.of(MemoryPurpose::ParameterGradients), 768);
    EXPECT_EQ(memory.of(MemoryPurpose::InputsAndOutputs), 384);
  }
  const std::vector<std::int64_t> kept = bytesFor(profile, MemoryPurpose::Kept);
  EXPECT_EQ(std::vector(kept.begin(), kept.begin() + 4), (std::vector<std::int64_t>{256, 512, 512, 512}));
  EXPECT_EQ(kept.back(), 0);
}

TEST(MemoryProfile, KeptTensorsNameWhoReadsThem) {
  const Graph graph = chain(DType::F32, {4, 8}, {linear(16, "fc"), link("GELU", "act"), linear(4, "out")});
  const Plan plan = makePlan(graph, unfused(graph));
  const MemoryProfile profile = memoryProfile(plan);
  ASSERT_EQ(profile.kept.size(), 2u);
  EXPECT_EQ(nameOf(profile.kept[0], plan), "fc:y");
  EXPECT_EQ(profile.kept[0].readers, (std::vector<NodeId>{1}));
  EXPECT_EQ(plan.steps[static_cast<std::size_t>(profile.kept[0].firstStep)].name, "fc");
  EXPECT_EQ(nameOf(profile.kept[1], plan), "act:y");
  EXPECT_EQ(profile.kept[1].readers, (std::vector<NodeId>{2}));
}

/// Two moments of 320 elements, and the counter of 8 bytes.
TEST(MemoryProfile, NamesTheStateOfAnOptimizer) {
  const Graph graph = chain(DType::F32, {4, 8}, {linear(40, "fc")}).withOptimizer(AdamW());
  const Plan plan = makePlan(graph, unfused(graph));
  const MemoryProfile profile = memoryProfile(plan);
  for (const StepMemory& memory : profile.steps) {
    EXPECT_EQ(memory.of(MemoryPurpose::Parameters), 1280);
    EXPECT_EQ(memory.of(MemoryPurpose::OptimizerState), 2 * 1280 + 8);
  }
  const std::string text = toString(profile, plan, graph);
  EXPECT_NE(text.find(" optimizer in and out "), std::string::npos) << text;
  EXPECT_NE(text.find("\noptimizer AdamW "), std::string::npos) << text;
}

TEST(MemoryProfile, InInferenceNothingIsKept) {
  const Graph graph =
      chain(DType::F32, {4, 8}, {linear(16, "fc"), link("GELU"), linear(4)}, {.pass = ExecutionMode::Inference});
  const MemoryProfile profile = memoryProfile(makePlan(graph, unfused(graph)));
  EXPECT_TRUE(profile.kept.empty());
  EXPECT_EQ(profile.steps.size(), 3u);
}

TEST(MemoryProfile, WhatIsOffloadedWaitsOnTheHostAndNotOnTheDevice) {
  const Graph graph =
      chain(DType::F32, {64, 64},
            {linear(256, "fc"), with(link("GELU", "act"), "cpu_offloading", true), linear(16), link("GELU")});
  const Plan plan = makePlan(graph, unfused(graph));
  const MemoryProfile profile = memoryProfile(plan);
  const auto onHost = std::ranges::find_if(profile.kept, &KeptTensor::isOnHost);
  ASSERT_NE(onHost, profile.kept.end());
  EXPECT_EQ(onHost->bytes, 64 * 256 * 4);
  EXPECT_EQ(onHost->readers, (std::vector<NodeId>{1}));
}

/// Device memory that the step reads and writes.
std::int64_t bytesTouched(const Plan& plan, const Step& step) {
  std::set<std::int64_t> places;
  std::int64_t bytes = 0;
  for (const StepOperand& operand : step.operands) {
    const int index = plan.tensors[static_cast<std::size_t>(operand.tensor)].storage;
    const Storage& storage = plan.storages[static_cast<std::size_t>(index)];
    if (!storage.isOnHost && places.insert(storage.offset).second) bytes += storage.bytes;
  }
  return bytes;
}

/// The inconsistency in a plan's profile; empty: there is none.
std::string flawOf(const Plan& plan) {
  const MemoryProfile profile = memoryProfile(plan);
  std::int64_t kept = 0;
  for (const KeptTensor& tensor : profile.kept) {
    kept += tensor.isOnHost ? 0 : tensor.bytes;
    if (tensor.readers.empty()) return "nobody reads " + nameOf(tensor, plan);
  }
  if (kept != plan.savedForBackwardBytes) return "what is kept is not what the plan saves";
  for (const StepMemory& memory : profile.steps) {
    const Step& step = plan.steps[static_cast<std::size_t>(memory.step)];
    if (memory.total() < bytesTouched(plan, step)) return step.name + " uses less than it touches";
    if (memory.total() > plan.peakBytes()) return step.name + " uses more than there is";
    if (std::ranges::min(memory.bytes) < 0) return step.name + " uses less than nothing";
  }
  return {};
}

TEST(MemoryProfile, AddsUpInEveryPipeline) {
  EXPECT_TRUE(rc::check("kept tensors add up to the plan's figure, and no step uses more than the plan has", [] {
    const RandomPipeline drawn = randomPipeline();
    const Graph graph = chain(DType::F32, {4, 16}, drawn.links, drawn.options);
    const Result<FusionReport> report = fuse(graph, {.switches = drawn.switches});
    RC_ASSERT(static_cast<bool>(report));
    RC_ASSERT(flawOf(makePlan(graph, unfused(graph))) == "");
    RC_ASSERT(flawOf(makePlan(graph, *report)) == "");
  }));
}

TEST(MemoryProfile, AddsUpInEveryTemplateUnderEveryRecipe) {
  for (const DocumentTemplate& entry : documentTemplates())
    for (const RecipeDefinition& recipe : builtinRecipes()) {
      AnalysisOptions options;
      options.recipe = recipeOf({.recipe = std::string(recipe.name)});
      const Analysis analysis = analyze(parseDocument(entry.text).document, options);
      const std::string flaw = analysis.isRunnable() ? flawOf(*analysis.fusedPlan) : std::string();
      EXPECT_EQ(flaw, "") << entry.name << " " << recipe.name;
    }
}

TEST(MemoryProfile, TextNamesThePeakAndWhatIsKept) {
  const Graph graph = chain(DType::F32, {4, 8}, {linear(16, "fc"), link("GELU", "act"), linear(4, "out")});
  const Plan plan = makePlan(graph, unfused(graph));
  const std::string text = toString(memoryProfile(plan), plan, graph);
  EXPECT_NE(text.find("at most 2.62 KiB in use, at out; allocated once: "), std::string::npos) << text;
  EXPECT_NE(text.find("kept for backward: 512 B"), std::string::npos) << text;
  EXPECT_NE(text.find("fc:y"), std::string::npos) << text;
}

/// Scores of one batch entry, 2 heads and 6 x 6 pairs, half of them masked: 72 numbers. The log-sum-exp is [1, 2, 6]; y
/// is kept for the linear, too.
TEST(MemoryProfile, NamesTheScoresOfAttentionAndItsOwnResults) {
  std::vector<Link> links = packedHeads(2, 2);
  links.push_back(attentionOf(2, 2, {"split.y", "split.y1", "split.y2"}));
  links.push_back(linear(16, "proj"));
  const Graph graph = chain(DType::BF16, {6, 16}, links);
  const Plan plan = makePlan(graph, std::move(*fuse(graph)));
  const std::string text = toString(memoryProfile(plan), plan, graph);
  EXPECT_NE(
      text.find("attention: its scores, 144 B, are never kept; recomputing its forward in backward would free 48 B\n"),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace fuseline::testing
