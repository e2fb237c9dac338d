// Kernel "adamw" of the CPU against the reference: dtypes, sizes at the edges of vectors and pieces, and resumption.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tolerance.h"
#include "kernels/cpu/cpu_backend.h"
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

TEST(AdamWKernel, IsTheReferenceForEveryDTypeAndSize) {
  for (const DType dtype : kFloatTypes)
    for (const std::int64_t width : {1, 3, 16, 37, 4096, 16384 + 5}) {
      const Graph graph = trainedChain(dtype, width, kOptions);
      const RunResults expected = trainedResults(graph, makeReferenceBackend(), 3);
      const RunResults actual = trainedResults(graph, cpu::makeCpuBackend(), 3);
      EXPECT_EQ(firstDifference(actual, expected, toleranceOf(dtype).relative), "") << dtypeName(dtype) << ' ' << width;
    }
}

TEST(AdamWKernel, ClipsGradientsAsTheReferenceDoes) {
  for (const DType dtype : kFloatTypes)
    for (const std::int64_t width : {1, 37, 16384 + 5}) {
      const Graph graph = trainedChain(dtype, width, kClipping);
      const RunResults expected = trainedResults(graph, makeReferenceBackend(), 3);
      const RunResults actual = trainedResults(graph, cpu::makeCpuBackend(), 3);
      EXPECT_EQ(firstDifference(actual, expected, toleranceOf(dtype).relative), "") << dtypeName(dtype) << ' ' << width;
    }
}

TEST(AdamWKernel, GoesOnFromItsStateWithTheSameBits) {
  for (const DType dtype : kFloatTypes) {
    const Graph graph = trainedChain(dtype, 37, kClipping);
    const NamedTensors whole = trainedState(graph, cpu::makeCpuBackend(), 5);
    const NamedTensors half = trainedState(graph, cpu::makeCpuBackend(), 2);
    const NamedTensors resumed = trainedState(graph, cpu::makeCpuBackend(), 3, half);
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_EQ(resumed[i].second.data, whole[i].second.data) << whole[i].first;
  }
}

TEST(AdamWKernel, DoesNotDependOnTheNumberOfThreads) {
  const Graph graph = trainedChain(DType::BF16, 40000, kClipping);
  EXPECT_EQ(trainedResults(graph, cpu::makeCpuBackend({.threads = 1}), 2),
            trainedResults(graph, cpu::makeCpuBackend({.threads = 2}), 2));
}

}  // namespace
}  // namespace fuseline::testing
