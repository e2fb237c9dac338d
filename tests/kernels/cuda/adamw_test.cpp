// Kernel "adamw" on CUDA: dtypes, sizes at the edges of packets, and more parameters than a launch has.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tolerance.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/trained_chain.h"

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr AdamW kOptions{.lr = 0.02, .weightDecay = 0.1};
constexpr AdamW kClipping{.lr = 0.02,
                          .weightDecay = 0.1,
                          .maxGradNorm = 0.5,
                          .schedule = LearningRateSchedule::Cosine,
                          .warmupSteps = 1,
                          .trainingSteps = 9};

/// Skips where there is no GPU, and this is not the harness.
class CudaAdamW : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto backend = cudaTestBackend(); !backend) GTEST_SKIP() << backend.error().message;
  }
};

void expectLikeReference(const Graph& graph, int runs, double tolerance) {
  const RunResults expected = trainedResults(graph, makeReferenceBackend(), runs);
  EXPECT_EQ(firstDifference(trainedResults(graph, *cudaTestBackend(), runs), expected, tolerance), "");
}

TEST_F(CudaAdamW, IsTheReferenceForEveryDTypeAndSize) {
  for (const DType dtype : kFloatTypes)
    for (const std::int64_t width : {1, 4, 37, 1024, 1027}) {
      SCOPED_TRACE(std::string(dtypeName(dtype)) + ' ' + std::to_string(width));
      expectLikeReference(trainedChain(dtype, width, kOptions), 3, toleranceOf(dtype).relative);
    }
}

TEST_F(CudaAdamW, ClipsGradientsAsTheReferenceDoes) {
  for (const DType dtype : kFloatTypes)
    for (const std::int64_t width : {1, 37, 1027}) {
      SCOPED_TRACE(std::string(dtypeName(dtype)) + ' ' + std::to_string(width));
      expectLikeReference(trainedChain(dtype, width, kClipping), 3, toleranceOf(dtype).relative);
    }
}

TEST_F(CudaAdamW, UpdatesMoreParametersThanALaunchHas) {
  std::vector<Link> links;
  for (int i = 0; i < 150; ++i) links.push_back(link("Bias", "b" + std::to_string(i)));
  expectLikeReference(chain(DType::BF16, {1, 9}, links).withOptimizer(kClipping), 2, 1e-2);
}

TEST_F(CudaAdamW, HasTheSameBitsInEveryRun) {
  const Graph graph = trainedChain(DType::BF16, 1027, kClipping);
  EXPECT_EQ(trainedResults(graph, *cudaTestBackend(), 3), trainedResults(graph, *cudaTestBackend(), 3));
}

}  // namespace
}  // namespace fuseline::testing
