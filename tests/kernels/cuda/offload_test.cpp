// Activation offload on the CUDA backend: the same bits as without, step by step and replayed.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/pipelines.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

Graph layers(bool isOffloaded, const std::string& recipe) {
  std::vector<Link> links = {link("RMSNorm", "norm"), linear(128, "fc1"),   link("SwiGLU", "act"),
                             linear(64, "fc2"),       link("GELU", "act2"), linear(32, "fc3")};
  for (Link& item : links) item = with(std::move(item), "cpu_offloading", isOffloaded);
  return chain(DType::BF16, {64, 64}, links, {.recipe = recipe});
}

class CudaOffload : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaOffload, ChangesNoResult) {
  const Result<std::shared_ptr<Backend>> backend = cudaTestBackend();
  if (const Verdict runs = runsRecipe(GetParam()); !runs) GTEST_SKIP() << runs.reason();
  const Graph kept = layers(false, GetParam());
  const Graph away = layers(true, GetParam());
  const NamedTensors bindings = *makeBindings(kept, 3);
  for (const bool isFused : {false, true}) {
    const auto planOf = [&](const Graph& graph) {
      return makePlan(graph, isFused ? *fuse(graph, {.capabilities = capabilitiesOf(*backend)}) : unfused(graph));
    };
    const Plan plan = planOf(kept);
    const Plan offloading = planOf(away);
    ASSERT_GT(offloading.hostBytes, 0);
    const auto expected = std::move(*Executor::create(*backend, kept, plan, bindings));
    const auto actual = std::move(*Executor::create(*backend, away, offloading, bindings));
    for (int run = 0; run < 3; ++run) {
      ASSERT_TRUE(expected->run());
      const Result<RunOutcome> ran = actual->run();
      ASSERT_TRUE(ran) << ran.error().message;
      for (const PlanTensor& tensor : plan.tensors) {
        if (!isResult(tensor.role)) continue;
        EXPECT_EQ(actual->read(tensor.name)->data, expected->read(tensor.name)->data) << tensor.name;
      }
    }
    EXPECT_EQ(actual->launching(), "captured and replayed");
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, CudaOffload,
                         ::testing::Values("", "DelayedScaling", "Float8CurrentScaling", "MXFP8BlockScaling",
                                           "NVFP4BlockScaling"),
                         [](const auto& test) { return std::string(*test.param ? test.param : "None"); });

}  // namespace
}  // namespace fuseline
