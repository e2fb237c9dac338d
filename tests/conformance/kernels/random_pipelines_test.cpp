// Random pipelines, fused for the CPU and run there, against the unfused reference.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_pipelines.h"

#include "core/fusion/fuser.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/run_plan.h"

#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

TEST(RandomPipelinesOnTheCpu, ComputeWhatTheReferenceComputesInFloat32) {
  const auto backend = cpu::makeCpuBackend();
  // Twelve ops deep, roundings of 6e-8 grow; a wrong gradient differs by its own size.
  EXPECT_TRUE(rc::check("fused on the CPU equals the unfused reference", [&] {
    const RandomPipeline pipeline = randomPipeline();
    const auto rows = *rc::gen::inRange<std::int64_t>(0, 40);
    const Graph graph = chain(DType::F32, {rows, 16}, pipeline.links, pipeline.options);
    RC_LOG() << toString(graph);
    const FusionReport report =
        std::move(*fuse(graph, {.switches = pipeline.switches, .capabilities = capabilitiesOf(backend)}));
    const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
    RC_ASSERT(firstDifference(runPlan(graph, report, backend), expected, 1e-3) == "");
  }));
}

}  // namespace
}  // namespace fuseline
