// Number of kernels and GEMMs that a run launches. A device waits about a microsecond for each.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/simt/simt.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// Counts the submissions of this thread during its lifetime.
class CountedLaunches {
 public:
  CountedLaunches() {
    simt::setWrapper([this](std::function<void()> work) {
      ++m_count;
      return work;
    });
  }
  ~CountedLaunches() { simt::setWrapper({}); }
  CountedLaunches(const CountedLaunches&) = delete;
  CountedLaunches& operator=(const CountedLaunches&) = delete;
  int count() const { return m_count; }

 private:
  int m_count = 0;
};

/// A run begins with a delay, so that the host is ahead of the device.
constexpr int kHeadStarts = 1;

Plan planOf(const Graph& graph) {
  return makePlan(graph, *fuse(graph, {.capabilities = capabilitiesOf(*compilingCudaTestBackend())}));
}

int launchesOf(const Graph& graph, const Plan& plan) {
  const auto backend = *compilingCudaTestBackend();
  const auto executor = std::move(*Executor::create(backend, graph, plan, *makeBindings(graph, 1)));
  EXPECT_TRUE(executor->run());  // steps that run once
  const CountedLaunches launches;
  EXPECT_TRUE(executor->run());
  return launches.count() - kHeadStarts;
}

/// The MLP of a Llama with its residual, one step of training.
Graph llamaMlp(const std::string& recipe) {
  ChainOptions options{.pass = ExecutionMode::Training, .recipe = recipe};
  if (recipe == "DelayedScaling") options.recipeFields.set("amax_history_len", std::int64_t{2});
  return chain(DType::BF16, {256, 256},
               {link("MakeExtraOutput", "save"), link("RMSNorm"), linear(1024, "fc1"), link("SwiGLU"),
                linear(256, "fc2"), inPlace(link("AddExtraInput", "add", "save.extra"))},
               options);
}

struct Expected {
  const char* recipe;
  int launches;
};

class Launches : public ::testing::TestWithParam<Expected> {};

TEST_P(Launches, OfALlamaMlpAreNoMore) {
  const Graph graph = llamaMlp(GetParam().recipe);
  const Plan plan = planOf(graph);
  EXPECT_EQ(launchesOf(graph, plan), GetParam().launches) << toString(plan);
}

/// One launch a step, and those that its backend expects beyond it.
TEST_P(Launches, OfQuantizersAndNormsThatQuantizeAreThePredictedOnes) {
  const auto backend = *compilingCudaTestBackend();
  const Graph graph = llamaMlp(GetParam().recipe);
  const Plan plan = planOf(graph);
  const auto executor = std::move(*Executor::create(backend, graph, plan, *makeBindings(graph, 1)));
  ASSERT_TRUE(executor->run());
  ASSERT_TRUE(executor->run());
  std::int64_t unexpected = 0;
  bool findsAmax = false;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.copies.empty() || !(step.isQuantize() || step.kernel == "RMSNorm")) continue;
    findsAmax |= step.copies.front().isAmaxOnly();
    unexpected += executor->launches(i) - 1 - backend->extraCost(plan, step).launches;
  }
  EXPECT_EQ(unexpected, findsAmax ? 1 : 0) << "all amaxes are cleared in one launch\n" << toString(plan);
}

INSTANTIATE_TEST_SUITE_P(Recipes, Launches,
                         ::testing::Values(Expected{"None", 10}, Expected{"DelayedScaling", 13},
                                           Expected{"Float8CurrentScaling", 18}, Expected{"Float8BlockScaling", 12}),
                         [](const auto& test) { return std::string(test.param.recipe); });

}  // namespace
}  // namespace fuseline
