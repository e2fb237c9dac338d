// The optimizer's step in plans: its place, its cost, and the memory of what it keeps.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/optimizer/optimizer_step.h"
#include "core/plan/memory_forecast.h"
#include "tests/support/pipelines.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr std::int64_t kElements = 8 * 4 + 8;

Graph trained(DType dtype, const ChainOptions& options = {}, const AdamW& adamw = {}) {
  return chain(dtype, {2, 4}, {linear(8, "fc"), link("Bias", "bias")}, options).withOptimizer(adamw);
}

std::int64_t stateBytes(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const PlanTensor& tensor : plan.tensors)
    if (tensor.role == TensorRole::OptimizerState) bytes += tensor.spec.bytes();
  return bytes;
}

// 28 bytes an element in every dtype: float32 reads 16 and writes 12; bf16 reads 14 and writes 14. The counter is 8.
TEST(OptimizerStep, IsTheLastOneWithTheTrafficOfEveryTensor) {
  for (const DType dtype : kFloatTypes) {
    const Graph graph = trained(dtype);
    for (const FusionReport& report : {unfused(graph), *fuse(graph)}) {
      const Plan plan = makePlan(graph, report);
      const Step& step = plan.steps.back();
      EXPECT_EQ(step.name, "AdamW");
      EXPECT_EQ(step.kernel, kAdamWKernel);
      EXPECT_EQ(step.phase, Phase::Optimizer);
      EXPECT_EQ(step.bytesRead + step.bytesWritten, 28 * kElements + 16);
      EXPECT_EQ(step.flops, 14 * kElements);
    }
  }
}

/// bf16: the gradients are read twice, and two sums are written and read.
TEST(OptimizerStep, ComesAfterTheNormOfGradientsThatAreClipped) {
  const Graph graph = trained(DType::BF16, {}, {.maxGradNorm = 1.0});
  const Plan plan = makePlan(graph, unfused(graph));
  const Step& norm = plan.steps[plan.steps.size() - 2];
  const Step& update = plan.steps.back();
  EXPECT_EQ(norm.kernel, kGradNormKernel);
  EXPECT_EQ(norm.phase, Phase::Optimizer);
  EXPECT_EQ(norm.bytesRead, 2 * kElements);
  EXPECT_EQ(norm.flops, 2 * kElements);
  ASSERT_NE(update.find({0, OperandKind::Input, 1}), nullptr);
  EXPECT_EQ(update.find({0, OperandKind::Input, 1})->tensor, norm.find({0, OperandKind::Output, 0})->tensor);
  EXPECT_EQ(update.bytesRead + update.bytesWritten, 28 * kElements + 16 + 8);
  EXPECT_EQ(plan.savedForBackwardBytes, makePlan(trained(DType::BF16), unfused(graph)).savedForBackwardBytes);
}

TEST(OptimizerStep, IsAbsentWithoutAnOptimizerOrParameters) {
  const auto lastOf = [](const Graph& graph) { return makePlan(graph, unfused(graph)).steps.back().kernel; };
  EXPECT_NE(lastOf(chain(DType::F32, {2, 4}, {linear(8)})), kAdamWKernel);
  EXPECT_NE(lastOf(chain(DType::F32, {2, 4}, {link("GELU")}).withOptimizer(AdamW())), kAdamWKernel);
  EXPECT_NE(lastOf(trained(DType::F32, {.pass = ExecutionMode::Inference})), kAdamWKernel);
}

TEST(OptimizerStep, HasItsStatesInThePlansMemory) {
  for (const auto& [dtype, perElement] : {std::pair(DType::F32, 8), {DType::BF16, 12}, {DType::F16, 12}}) {
    const Graph graph = trained(dtype);
    const Plan plan = makePlan(graph, unfused(graph));
    EXPECT_EQ(stateBytes(plan), perElement * kElements + 8);
    const Graph plain = chain(dtype, {2, 4}, {linear(8, "fc"), link("Bias", "bias")});
    EXPECT_GE(plan.persistentBytes, makePlan(plain, unfused(plain)).persistentBytes + stateBytes(plan));
  }
}

/// TransformerEngine keeps such a weight quantized only; here it is updated in high precision.
TEST(OptimizerStep, HasWeightsThatAreQuantizedInEveryRun) {
  ChainOptions options{.recipe = "MXFP8BlockScaling"};
  options.recipeFields.set("quantized_model_init", true);
  const Graph quantized = chain(DType::BF16, {32, 32}, {linear(32, "fc")}, options);
  const auto onceOf = [](const Graph& graph) {
    const Plan plan = makePlan(graph, unfused(graph));
    return std::ranges::count_if(plan.steps, &Step::runsOnce);
  };
  EXPECT_EQ(onceOf(quantized), 1);
  EXPECT_EQ(onceOf(Graph(quantized).withOptimizer(AdamW())), 0);
}

}  // namespace
}  // namespace fuseline::testing
