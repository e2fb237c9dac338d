// Formulas on the CPU backend against the double-precision reference: with inputs, vectors and scalars that are
// learned, alone and in chains, before a gated op, in every dtype.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/compare.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

Link formula(const std::string& y, const std::string& inputs = "", const std::string& parameters = "",
             const std::string& constants = "") {
  const Link link = with(with(testing::link("Formula"), "y", y), "inputs", inputs);
  return with(with(link, "parameters", parameters), "constants", constants);
}

/// The difference between the fused plan on the CPU and the unfused one on the reference; empty if there is none.
std::string difference(DType dtype, const Shape& shape, const std::vector<Link>& links) {
  const Graph graph = chain(dtype, shape, links);
  const auto backend = cpu::makeCpuBackend();
  const auto report = fuse(graph, {.capabilities = capabilitiesOf(backend)});
  if (!report) return report.error().message;
  const double tolerance = dtype == DType::F16 ? 8 * 0x1p-11 : toleranceOf(dtype).relative;
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  return firstDifference(runPlan(graph, *report, backend), expected, tolerance, 1e-4);
}

void expectLikeReference(const std::vector<Link>& links) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const Shape& shape : {Shape{0, 16}, Shape{1, 2}, Shape{7, 62}, Shape{3, 2, 34}, Shape{130, 1026}, Shape{600}})
      EXPECT_EQ(difference(dtype, shape, links), "") << dtypeName(dtype) << " " << toString(shape);
}

TEST(FormulaKernels, RunAloneLikeTheReference) {
  expectLikeReference({formula("x * sigmoid(1.702 * x)")});
  expectLikeReference({formula("tanh(x) * half + erf(x) + softplus(x) - max(x, cap) + x^3 / (1 + x^2)", "", "",
                               "half = 0.5, cap = 0.25")});
}

/// The result of a subtraction must be right, too, not only its terms: within a bf16 rounding of the result.
TEST(FormulaKernels, KeepWhatIsLeftOfADifference) {
  const auto backend = cpu::makeCpuBackend();
  for (const char* y : {"1000 * (sigmoid(x) - 0.5)", "1000 * (sigmoid(x) + -0.5)", "softplus(x - 9)",
                        "1000 * (silu(x) - 0.5 * x)", "1000 * (-(0.5 * x) + silu(x))", "exp(40 * sigmoid(x))"}) {
    const Graph graph = chain(DType::BF16, {64, 64}, {formula(y)}, {.pass = ExecutionMode::Inference});
    const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
    const RunResults actual = runPlan(graph, unfused(graph), backend);
    EXPECT_EQ(firstDifference(actual, expected, 0x1p-7, 1e-6), "") << y;
  }
}

TEST(FormulaKernels, ReadSeveralInputs) {
  expectLikeReference({formula("where(x < b, x * mask, silu(b)) + abs(mask)", "b, mask")});
}

TEST(FormulaKernels, LearnVectorsAndScalars) {
  expectLikeReference({formula("alpha * tanh(beta * x) + gamma", "", "alpha = 0.5, beta[1] = 0.75, gamma[1] = -0.5")});
}

TEST(FormulaKernels, HaveNoSlopeWhereTheyAreSteps) {
  expectLikeReference({formula("where(x < b, beta, 2)", "b", "beta[1] = 0.75")});
  expectLikeReference({formula("x < 0.5")});
}

TEST(FormulaKernels, PassGradientsOnUnchanged) { expectLikeReference({formula("x + b + beta", "b", "beta = 1")}); }

TEST(FormulaKernels, JoinChains) {
  const std::vector<Link> links = {link("SiLU"), formula("alpha * x + 0.5", "", "alpha[1] = 1.25"), link("Bias")};
  expectLikeReference(links);
  const auto report = fuse(chain(DType::BF16, {6, 16}, links), {.capabilities = capabilitiesOf(cpu::makeCpuBackend())});
  ASSERT_EQ(report->forward.size(), 1U);
  EXPECT_EQ(report->forward[0].rule->name, "ForwardElementwiseChain");
  ASSERT_EQ(report->backward.size(), 1U);
  EXPECT_EQ(report->backward[0].rule->name, "BackwardElementwiseChain");
}

// The gated op takes a tensor twice as wide as the grid, so a scalar's gradient is summed over two lanes.
TEST(FormulaKernels, StandBeforeAGatedOp) {
  const std::vector<Link> links = {formula("alpha * x + beta", "", "alpha = 0.5, beta[1] = 0.25"), link("SwiGLU")};
  expectLikeReference(links);
}

TEST(FormulaKernels, StandBehindALinear) {
  expectLikeReference({linear(32), link("Bias"), formula("beta * gelu(x)", "", "beta[1] = 0.5")});
}

}  // namespace
}  // namespace fuseline
