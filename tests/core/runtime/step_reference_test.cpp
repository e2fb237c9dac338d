// Single steps through the references; fused plans of every rule are compared by tests/conformance/rules.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/step_reference.h"

#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

TEST(StepReference, MakesAgainWhatAJointFusionDidNotKeep) {
  const Graph graph = chain(DType::F32, {2, 8}, {link("SwiGLU", "act"), linear(3, "fc")});
  const Result<FusionReport> report = fuse(graph, {.switches = {.with = {"ForwardBackwardSwiGLULinear"}}});
  ASSERT_TRUE(report);
  const Plan plan = makePlan(graph, *report);
  const auto step = std::ranges::find_if(
      plan.steps, [](const Step& s) { return s.kernel == "swiglu_linear" && s.phase == Phase::Backward; });
  ASSERT_NE(step, plan.steps.end());
  ASSERT_EQ(step->find({1, OperandKind::Input, 0}), nullptr) << "the fusion is expected not to keep SwiGLU's output";
  const RunResults fused = runPlan(graph, *report, makeReferenceBackend());
  const RunResults basic = runPlan(graph, unfused(graph), makeReferenceBackend());
  EXPECT_EQ(firstDifference(fused, basic, 2e-6), "");
}

TEST(StepReference, SumsGradientsAtABranch) {
  const Graph graph = chain(DType::F32, {2}, {link("Identity")});
  const Step step{.kernel = "accumulate", .phase = Phase::Backward};
  const auto vector = [](double a, double b) { return ReferenceTensor{.shape = {2}, .values = {a, b}}; };
  StepReference reference(graph, step,
                          {{{0, OperandKind::Input, 0}, vector(1, 2)},
                           {{0, OperandKind::Input, 1}, vector(10, 20)},
                           {{0, OperandKind::Input, 2}, vector(100, 200)}});
  EXPECT_EQ(reference.value({0, OperandKind::Output, 0}).values, (std::vector<double>{111, 222}));
}

TEST(StepReference, NamesAnOperandThatIsMissing) {
  const Graph graph = chain(DType::F32, {2, 4}, {linear(3, "fc")});
  const Step step{.name = "fc", .kernel = "BasicLinear", .nodes = {0}};
  StepReference reference(graph, step,
                          {{{0, OperandKind::Input, 0}, {.shape = {2, 4}, .values = std::vector<double>(8)}}});
  try {
    reference.value({0, OperandKind::Output, 0});
    FAIL() << "the weight is missing";
  } catch (const std::logic_error& problem) {
    EXPECT_NE(std::string(problem.what()).find("fc"), std::string::npos);
  }
}

}  // namespace
}  // namespace fuseline
