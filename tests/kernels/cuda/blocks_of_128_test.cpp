// Blocks of 128 on GPUs that multiply blocks of 32 only: the same results as where they are multiplied as they are.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "kernels/cuda/gemm/factor.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"
#include "tests/support/simt/host_gemm.h"
#include "tests/support/simt/simt_backend.h"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

using namespace fuseline::testing;

constexpr ComputeCapability kHopper = {9, 0};
constexpr ComputeCapability kBlackwell = {10, 0};

GemmProblem problemOf(Scaling scaling) {
  return {.m = 128, .n = 128, .k = 128, .aCodes = FactorCodes{.scaling = scaling}, .bCodes = FactorCodes()};
}

TEST(FactorWay, IsTakenWhereTheGpuHasNoSuchBlocks) {
  for (const Scaling scaling : {Scaling::Block1x128, Scaling::Block128x128}) {
    EXPECT_EQ(factorWayOf(problemOf(scaling), kHopper), FactorWay::AsTheyAre);
    EXPECT_EQ(factorWayOf(problemOf(scaling), {}), FactorWay::AsTheyAre);
    EXPECT_EQ(factorWayOf(problemOf(scaling), kBlackwell), FactorWay::AsMxfp8);
    EXPECT_EQ(factorWayOf(problemOf(scaling), {12, 0}), FactorWay::AsMxfp8);
  }
  for (const Scaling scaling : {Scaling::PerTensor, Scaling::Mx1x32})
    EXPECT_EQ(factorWayOf(problemOf(scaling), kBlackwell), FactorWay::AsTheyAre);
}

/// A block that ends early holds no whole number of blocks of 32: it is decoded. Hopper takes it as it is.
TEST(FactorWay, DecodesBlocksThatEndWithinOneOfMxfp8) {
  for (const auto& [k, way] : {std::pair(144, FactorWay::Decoded), std::pair(160, FactorWay::AsMxfp8)}) {
    GemmProblem problem = problemOf(Scaling::Block1x128);
    problem.k = k;
    EXPECT_EQ(factorWayOf(problem, kBlackwell), way) << k;
    EXPECT_EQ(factorWayOf(problem, kHopper), FactorWay::AsTheyAre) << k;
  }
}

/// Ensures that the tests below cannot pass by default.
TEST(BlocksOf128, AreNotMultipliedByTheHarnessAsABlackwell) {
  const auto library = makeHostGemms(false);
  EXPECT_FALSE(library->prepare(problemOf(Scaling::Block1x128)));
  EXPECT_TRUE(makeHostGemms()->prepare(inWay(problemOf(Scaling::Block1x128), FactorWay::AsMxfp8)));
}

ChainOptions blocks(std::int64_t xDim, std::int64_t wDim, std::int64_t gradDim) {
  ChainOptions options{.recipe = "Float8BlockScaling"};
  options.recipeFields.set("x_block_scaling_dim", xDim);
  options.recipeFields.set("w_block_scaling_dim", wDim);
  options.recipeFields.set("grad_block_scaling_dim", gradDim);
  return options;
}

/// Results are sums of the same products: they are equal, and not only close.
void expectTheSameResults(const Graph& graph) {
  const auto resultsOn = [&](ComputeCapability capability) {
    return runPlan(graph, unfused(graph), makeSimtBackend(nullptr, capability));
  };
  EXPECT_EQ(resultsOn(kBlackwell), resultsOn(kHopper));
}

TEST(BlocksOf128, GiveTheSameResultsAsMxfp8) {
  for (const auto& [x, w, grad] : {std::tuple{1, 2, 1}, {1, 1, 1}, {2, 1, 1}, {1, 1, 2}})
    expectTheSameResults(
        chain(DType::BF16, {128, 384}, {linear(256, "fc"), link("GELU"), linear(128, "out")}, blocks(x, w, grad)));
}

Link experts() {
  Link link = with(testing::link("GroupedLinear", "experts"), "num_groups", 3);
  link.attributes.set("out_features", 256);
  return link;
}

/// A GEMM over rows of a group with 144 rows is decoded on Blackwell; its scales are powers of two.
TEST(BlocksOf128, GiveTheSameResultsInGroups) {
  const Graph graph = chain(DType::BF16, {384, 128}, {experts()}, blocks(1, 2, 1));
  for (const std::vector<double>& rows : {std::vector<double>{128, 0, 256}, {144, 0, 240}, {32, 288, 64}}) {
    const NamedTensors sizes = {{"experts_split_sizes", Tensor::fromDoubles({DType::I64, {3}}, rows)}};
    const auto resultsOn = [&](ComputeCapability capability) {
      return runPlan(graph, unfused(graph), makeSimtBackend(nullptr, capability), 1, sizes);
    };
    EXPECT_EQ(resultsOn(kBlackwell), resultsOn(kHopper));
  }
}

TEST(BlocksOf128, SayThatTheyAreMultipliedAsMxfp8) {
  const auto numSaid = [](ComputeCapability capability) {
    const Graph graph = chain(DType::BF16, {128, 128}, {linear(128, "fc")}, blocks(1, 2, 1));
    const Plan plan = makePlan(graph, unfused(graph));
    const auto executor = Executor::create(makeSimtBackend(nullptr, capability), graph, plan, *makeBindings(graph, 1));
    if (!executor) throw std::runtime_error(executor.error().message);
    std::ptrdiff_t said = 0;
    for (std::size_t step = 0; step < plan.steps.size(); ++step)
      said += std::ranges::count((*executor)->ways(step), describe(FactorWay::AsMxfp8));
    return said;
  };
  EXPECT_EQ(numSaid(kHopper), 0);
  EXPECT_EQ(numSaid(kBlackwell), 3);  // y, dx and dW
}

}  // namespace
}  // namespace fuseline::cuda
