// Properties of whole pipelines: every generated one fuses to a plan that expands to itself and computes the same.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_pipelines.h"
#include "core/fusion/fuser.h"
#include "tests/support/run_plan.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// Are all ops of every entry in one Sequential?
bool staysInside(const Graph& graph, const std::vector<FusedOperation>& list) {
  return std::ranges::all_of(list, [&](const FusedOperation& entry) {
    return std::ranges::all_of(entry.nodes, [&](NodeId id) {
      return graph.node(id).sequential == graph.node(entry.nodes.front()).sequential;
    });
  });
}

void checkPipeline(DType dtype, double rtol) {
  const RandomPipeline pipeline = randomPipeline();
  const Graph graph = chain(dtype, {5, 16}, pipeline.links, pipeline.options);
  RC_LOG() << toString(graph);
  const FusionReport report = std::move(*fuse(graph, {.switches = pipeline.switches}));
  RC_LOG() << toTree(graph, report);
  const Verdict expands = verifyExpansion(graph, report);
  RC_ASSERT(expands.reason() == "");
  RC_ASSERT(staysInside(graph, report.forward) && staysInside(graph, report.backward));
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  const RunResults actual = runPlan(graph, report, makeReferenceBackend());
  RC_ASSERT(firstDifference(actual, expected, rtol) == "");
}

TEST(RandomPipelines, FuseToAPlanThatComputesTheSameInFloat32) {
  // Twelve ops deep, roundings of 6e-8 grow; a wrong gradient differs by its own size.
  EXPECT_TRUE(rc::check("fused equals unfused", [] { checkPipeline(DType::F32, 1e-4); }));
}

TEST(RandomPipelines, FuseToTheSameReportTwice) {
  EXPECT_TRUE(rc::check("fusing is deterministic", [] {
    const RandomPipeline pipeline = randomPipeline();
    const Graph graph = chain(DType::BF16, {5, 16}, pipeline.links, pipeline.options);
    const FusionOptions options{.switches = pipeline.switches};
    RC_ASSERT(toJson(graph, *fuse(graph, options)) == toJson(graph, *fuse(graph, options)));
  }));
}

}  // namespace
}  // namespace fuseline
