// Whole plans on the CUDA kernels under the SIMT harness against the double-precision reference.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/ops/catalog.h"
#include "tests/support/compare.h"
#include "tests/support/pipelines.h"
#include "tests/support/rule_samples.h"
#include "tests/support/run_plan.h"
#include "tests/support/simt/simt_backend.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

constexpr DType kDTypes[] = {DType::F32, DType::BF16, DType::F16};

/// Last axes are even, so that gated ops accept them. Odd halves, whole packets, several blocks.
const std::vector<Shape> kShapes = {{0, 16}, {1, 2}, {6, 16}, {7, 62}, {3, 2, 34}, {70, 528}, {600}};

Link sampleLink(const std::string& operation) {
  const bool isLinear = operation == "BasicLinear" || operation == "GroupedLinear";
  return isLinear ? with(link(operation), "out_features", std::int64_t{21}) : link(operation);
}

bool canRun(const Graph& graph, const FusionReport& report) {
  const auto backend = makeSimtBackend();
  const Plan plan = makePlan(graph, report);
  return std::ranges::all_of(plan.steps, [&](const Step& step) {
    return step.isView || backend->supports({graph, step.kernel, step.phase, step.nodes});
  });
}

void expectLikeReference(const Graph& graph, const FusionReport& report, double relative, const std::string& label) {
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  const RunResults actual = runPlan(graph, report, makeSimtBackend());
  EXPECT_EQ(firstDifference(actual, expected, relative), "") << label << "\n" << toString(graph);
}

class CudaOps : public ::testing::TestWithParam<const FusibleOperation*> {};

TEST_P(CudaOps, TrainLikeTheReference) {
  const std::string& name = GetParam()->name;
  for (const DType dtype : kDTypes)
    for (const Shape& shape : kShapes) {
      const Graph graph = chain(dtype, shape, {sampleLink(name)});
      if (!canRun(graph, unfused(graph))) GTEST_SKIP() << "The CUDA backend has no kernel for " << name << ".";
      expectLikeReference(graph, unfused(graph), toleranceOf(dtype).relative,
                          name + " in " + std::string(dtypeName(dtype)));
    }
}

std::vector<const FusibleOperation*> basicOperations() {
  std::vector<const FusibleOperation*> basic;
  for (const auto& op : builtinOperations().operations())
    if (!op->isComposite()) basic.push_back(op.get());
  return basic;
}

INSTANTIATE_TEST_SUITE_P(Catalog, CudaOps, ::testing::ValuesIn(basicOperations()),
                         [](const auto& test) { return test.param->name; });

}  // namespace
}  // namespace fuseline
