// The cases of `fuseline-bench gpu`, and the model of its ceilings.
// SPDX-License-Identifier: Apache-2.0
#include "app/bench/gpu_cases.h"
#include "core/document/file_format.h"
#include "core/profile/roofline.h"
#include "core/quant/recipe.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace fuseline::cli {
namespace {

TEST(GpuCases, HaveNamesOfTheirOwnAndPipelinesAndRecipesThatExist) {
  std::set<std::string> names;
  for (const GpuCase& each : gpuCases()) {
    EXPECT_TRUE(names.insert(each.name()).second) << each.name();
    EXPECT_NE(findTemplate(each.pipeline), nullptr) << each.pipeline;
    EXPECT_TRUE(each.recipe == "none" || recipeNamed(each.recipe)) << each.recipe;
  }
  for (const char* name :
       {"gpt-mlp_1.3B_DelayedScaling_train", "llama-mlp_8B_none_forward", "llama-mlp_70B_Float8BlockScaling_train",
        "gpt-mlp_175B_none_train", "grouped-mlp_experts_none_train"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(GpuCases, AreMeasuredByDefaultWhereTheySayMost) {
  const std::vector<GpuCase> cases = gpuCases();
  const auto numDefault = std::ranges::count_if(cases, &GpuCase::isDefault);
  EXPECT_GT(numDefault, 20);
  EXPECT_LT(numDefault, 40) << "a few minutes";
  EXPECT_GT(std::ranges::ssize(cases), 2 * numDefault);
}

Analysis analysisOf(const std::string& pipeline, const GpuSize& size, const char* recipe, ExecutionMode pass) {
  const DocumentTemplate* found = findTemplate(pipeline);
  AnalysisOptions options{.lowering = {.pass = pass}};
  options.lowering.symbols = {{"M", size.M}, {"H", size.H}, {"F", size.F}};
  options.capability = ComputeCapability{9, 0};
  if (recipe) options.recipe = *Recipe::create(**recipeNamed(recipe), {});
  return analyze(parseDocument(found->text).document, options);
}

double ceilingOf(const Analysis& analysis, const DevicePeaks& peaks) {
  return leastTimeNs(workOf(analysis.graph(), analysis.unfusedPlan()), peaks) /
         leastTimeNs(workOf(analysis.graph(), *analysis.fusedPlan), peaks);
}

/// The peaks that shared figures of an H200 assume. The ceilings were computed by hand there, from passes over memory
/// and GEMMs; the model here counts the steps of the plans.
const DevicePeaks kH200{.copyGBps = 4300, .fmaF32Gflops = 60e3, .bf16Gflops = 790e3, .fp8Gflops = 1450e3};

TEST(PlanPeak, IsNearTheCeilingsOfPublishedModels) {
  const auto caseNamed = [](const std::string& name) {
    const std::vector<GpuCase> cases = gpuCases();
    return *std::ranges::find(cases, name, &GpuCase::name);
  };
  const GpuSize small = caseNamed("gpt-mlp_1.3B_none_train").size;
  const GpuSize large = caseNamed("llama-mlp_8B_none_train").size;
  EXPECT_NEAR(ceilingOf(analysisOf("gpt-mlp", small, nullptr, ExecutionMode::Inference), kH200), 1.166, 0.07);
  EXPECT_NEAR(ceilingOf(analysisOf("llama-mlp", large, nullptr, ExecutionMode::Training), kH200), 1.037, 0.03);
  EXPECT_NEAR(ceilingOf(analysisOf("llama-mlp", large, "DelayedScaling", ExecutionMode::Training), kH200), 1.14, 0.08);
}

}  // namespace
}  // namespace fuseline::cli
