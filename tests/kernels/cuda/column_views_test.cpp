// Attention of real layers on the CUDA kernels: planned without copies, and with the reference's results.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "tests/support/attention_layers.h"
#include "tests/support/compare.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/run_plan.h"

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

struct ExpectedPlan {
  AttentionLayer layer;
  std::string forward;
  std::string backward;
};

/// Rotary embeddings of packed tensors are applied in place. Empty: the passes of GEMMs depend on the dtype.
std::vector<ExpectedPlan> expectedPlans() {
  return {{llamaAttention(), "BasicLinear split_rotary DotProductAttention",
           "DotProductAttention split_rotary BasicLinear"},
          {qwen3Attention(), "BasicLinear norm_rotary norm_rotary DotProductAttention",
           "DotProductAttention norm_rotary norm_rotary BasicLinear"},
          {gpt2Attention(), "", ""}};
}

TEST(CudaColumnViews, PlanAttentionWithoutACopy) {
  const auto backend = cudaTestBackend();
  if (!backend) GTEST_SKIP() << backend.error().message;
  for (const auto& [layer, forward, backward] : expectedPlans())
    for (const std::int64_t tokens : {19, 128})
      for (const DType dtype : kFloatTypes) {
        const Graph graph = chain(dtype, {tokens, 2, 16}, layer.links);
        const FusionReport report = std::move(*fuse(graph, {.capabilities = capabilitiesOf(*backend)}));
        const Plan plan = makePlan(graph, report);
        if (!forward.empty()) {
          EXPECT_EQ(launchedKernels(plan, Phase::Forward), forward) << toString(plan);
          EXPECT_EQ(launchedKernels(plan, Phase::Backward), backward) << toString(plan);
        }
        for (const Phase phase : {Phase::Forward, Phase::Backward})
          EXPECT_EQ(bytesOf(plan, phase, "Split"), 0) << toString(plan);
        EXPECT_EQ(firstDifference(runPlan(graph, report, *cudaTestBackend()),
                                  runPlan(graph, unfused(graph), makeReferenceBackend()),
                                  (dtype == DType::F32 ? 1.0 : 8.0) * toleranceOf(dtype).relative),
                  "")
            << layer.name << " of " << tokens << " tokens in " << dtypeName(dtype);
      }
}

TEST(CudaColumnViews, LinearsAndNormsReadAndWriteColumns) {
  const auto backend = cudaTestBackend();
  if (!backend) GTEST_SKIP() << backend.error().message;
  for (const AttentionLayer& layer : {splitLinears(), joinedLinears(), splitNorms()})
    for (const DType dtype : kFloatTypes) {
      const Graph graph = chain(dtype, {19, 2, 16}, layer.links);
      for (const FusionReport& report : {unfused(graph), *fuse(graph, {.capabilities = capabilitiesOf(*backend)})}) {
        const Plan plan = makePlan(graph, report);
        for (const Phase phase : {Phase::Forward, Phase::Backward})
          for (const char* copy : {"Split", "Concat"}) EXPECT_EQ(bytesOf(plan, phase, copy), 0) << toString(plan);
        EXPECT_EQ(
            firstDifference(runPlan(graph, report, *cudaTestBackend()), runPlan(graph, report, makeReferenceBackend()),
                            (dtype == DType::F32 ? 1.0 : 8.0) * toleranceOf(dtype).relative),
            "")
            << layer.name << " in " << dtypeName(dtype);
      }
    }
}

/// A plan that keeps all intermediates copies every part. By cuDNN's stand-in, and by GEMMs.
TEST(CudaColumnViews, LatentAttentionGivesTheSameBitsAsCopies) {
  const auto backend = cudaTestBackend();
  if (!backend) GTEST_SKIP() << backend.error().message;
  for (const std::int64_t tokens : {19, 128})
    for (const DType dtype : kFloatTypes) {
      const Graph graph = chain(dtype, {tokens, 2, 16}, latentAttention().links);
      for (const FusionReport& report : {unfused(graph), *fuse(graph, {.capabilities = capabilitiesOf(*backend)})}) {
        const RunResults results = runPlan(graph, report, *cudaTestBackend());
        const Plan copying = makePlan(graph, report, {.keepIntermediates = true});
        EXPECT_TRUE(results == runPlan(graph, copying, *cudaTestBackend())) << tokens << " in " << dtypeName(dtype);
        EXPECT_EQ(firstDifference(results, runPlan(graph, report, makeReferenceBackend()),
                                  (dtype == DType::F32 ? 1.0 : 8.0) * toleranceOf(dtype).relative),
                  "")
            << tokens << " tokens in " << dtypeName(dtype);
      }
    }
}

/// Queries and keys are read and written once by the rotary embedding, values not at all.
TEST(CudaColumnViews, RotateQueriesAndKeysInPlace) {
  const auto backend = cudaTestBackend();
  if (!backend) GTEST_SKIP() << backend.error().message;
  const Graph graph = chain(DType::BF16, {128, 2, 16}, llamaAttention().links);
  const Plan plan = makePlan(graph, *fuse(graph, {.capabilities = capabilitiesOf(*backend)}));
  const std::int64_t queriesAndKeys = 128 * 2 * (4 + 2) * 8;
  EXPECT_EQ(bytesOf(plan, Phase::Forward, "split_rotary"), 2 * 2 * queriesAndKeys);
  EXPECT_EQ(bytesOf(plan, Phase::Backward, "split_rotary"), 2 * 2 * queriesAndKeys);
}

}  // namespace
}  // namespace fuseline::testing
