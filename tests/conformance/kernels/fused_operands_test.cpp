// Steps with fused quantization: the same bits as with a separate quantizing step, or, if the quantized values follow
// from unrounded numbers, values that differ by at most one step of the format.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/attention_layers.h"
#include "tests/support/compare.h"
#include "tests/support/handed_codes.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

struct Pipeline {
  const char* label;
  std::vector<Link> links;
  std::size_t numFusedOperands;
};

/// The quantized tensors: the result of a norm, of a residual sum's norm, of an activation in the epilogue of another
/// GEMM, of a gated op, and the gradients of all of these.
std::vector<Pipeline> pipelines() {
  return {
      {"norm", {link("RMSNorm"), linear(256)}, 1},
      {"sum and norm", {link("AddExtraInput"), link("LayerNorm"), linear(128)}, 1},
      {"mlp", {linear(256), link("SwiGLU"), linear(128)}, 2},
      {"mlp with biases", {linear(128), link("Bias"), link("GELU"), linear(128), link("Bias"), link("ReLU")}, 3},
      {"branch and norm",
       {link("MakeExtraOutput", "save"), link("LayerNorm", "a"), linear(128, "b"),
        link("AddExtraInput", "c", "save.extra"), link("RMSNorm", "d"), linear(128, "e")},
       3},
      {"two readers",
       {link("GELU", "a"), linear(128, "q"), reading("a.y", linear(128, "k")), link("AddExtraInput", "add", "q.y")},
       2},
      {"chain", {link("GELU"), link("ConstantScale"), linear(128), link("Dropout"), link("SiLU")}, 2},
      {"wide rows", {linear(1280), link("GELU"), linear(128)}, 2},
  };
}

class FusedOperands : public ::testing::TestWithParam<const char*> {
 protected:
  Graph graphOf(const Pipeline& pipeline, DType dtype) const {
    return chain(dtype, {384, 128}, pipeline.links, {.recipe = GetParam()});
  }
};

/// Sums over rows may be added in other parts, because blocks of rows belong to one thread.
RunResults withoutRowSums(const Graph& graph, RunResults results) {
  for (const Node& node : graph.nodes())
    if (node.operation->name != "BasicLinear")
      for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
        results.erase(node.parameterGradientName(slot));
  return results;
}

/// Per-tensor amaxes are of the same bits as the tensors.
void expectSame(const Graph& graph, const RunResults& actual, const RunResults& expected, double rtol,
                const std::string& label) {
  EXPECT_TRUE(withoutRowSums(graph, actual) == withoutRowSums(graph, expected)) << label;
  EXPECT_EQ(firstDifference(actual, expected, rtol), "") << label;
}

TEST_P(FusedOperands, GiveTheSameBits) {
  for (const Pipeline& pipeline : pipelines())
    for (const DType dtype : {DType::F32, DType::BF16}) {
      const Graph graph = graphOf(pipeline, dtype);
      for (const int threads : {1, 3}) {
        const auto cpu = cpu::makeCpuBackend({.threads = threads});
        const FusionReport report = fusedFor(graph, cpu);
        ASSERT_EQ(report.fusedOperands.size(), pipeline.numFusedOperands) << pipeline.label << "\n"
                                                                          << toTree(graph, report);
        const std::string label = fmt::format("{} in {} on {} threads", pipeline.label, dtypeName(dtype), threads);
        const RunResults actual = runPlan(graph, report, cpu);
        const RunResults expected = runPlan(graph, withoutFusedOperands(report), cpu);
        if (quantizesUnrounded(graph, report))
          EXPECT_EQ(differenceOfNextCodes(actual, expected), "") << label;
        else
          expectSame(graph, actual, expected, toleranceOf(dtype).relative, label);
      }
    }
}

/// The rows of each expert are quantized by themselves; a group without rows has a scale, too.
TEST_P(FusedOperands, OfExpertsGiveTheSameBits) {
  const std::size_t numFusedOperands = std::string(GetParam()) == "Float8CurrentScaling" ? 0 : 1;
  const auto cpu = cpu::makeCpuBackend({.threads = 2});
  for (const std::vector<std::string>& outputs : {std::vector<std::string>(), {"permute.y"}}) {
    const Graph graph =
        chain(DType::BF16, {40, 128}, expertLinks(128), {.extraOutputs = outputs, .recipe = GetParam()});
    const FusionReport report = fusedFor(graph, cpu);
    ASSERT_EQ(report.fusedOperands.size(), numFusedOperands) << toTree(graph, report);
    EXPECT_EQ(runPlan(graph, report, cpu), runPlan(graph, withoutFusedOperands(report), cpu));
    EXPECT_EQ(statesOfQuantizers(graph, report, cpu), statesOfQuantizers(graph, withoutFusedOperands(report), cpu));
  }
}

/// A scale that needs the amax first finds no result to quantize there. With two outputs of the same value, the
/// gradient that the Bias reads is a sum that no op produces.
TEST_P(FusedOperands, OfABiasGiveTheSameBits) {
  const std::size_t numFusedOperands = std::string(GetParam()) == "Float8CurrentScaling" ? 0 : 1;
  const std::vector<std::string> none, twice = {"bias1.y"};
  for (const auto& [dtype, outputs] : {std::pair(DType::F32, none), {DType::BF16, none}, {DType::BF16, twice}}) {
    const Graph graph =
        chain(dtype, {384, 128}, {linear(256), link("Bias")}, {.extraOutputs = outputs, .recipe = GetParam()});
    const auto cpu = cpu::makeCpuBackend({.threads = 2});
    const FusionReport report = fusedFor(graph, cpu);
    ASSERT_EQ(report.fusedOperands.size(), numFusedOperands) << toTree(graph, report);
    for (const std::shared_ptr<Backend>& backend : {std::shared_ptr<Backend>(cpu), makeReferenceBackend()})
      expectSame(graph, runPlan(graph, report, backend), runPlan(graph, withoutFusedOperands(report), backend),
                 toleranceOf(dtype).relative, backend->device().id);
  }
}

/// BackwardLinearScale reads the gradient that the Bias behind the scale passes on.
TEST_P(FusedOperands, OfABiasBehindAFusedLinearGiveTheSameBits) {
  const Graph graph =
      chain(DType::BF16, {384, 128}, {linear(256), with(link("ConstantScale"), "scale", 2.0), link("Bias")},
            {.recipe = GetParam()});
  const auto cpu = cpu::makeCpuBackend({.threads = 2});
  for (const RuleBook book : {RuleBook::Te, RuleBook::All}) {
    const FusionReport report = *fuse(graph, {.book = book, .capabilities = capabilitiesOf(cpu)});
    expectSame(graph, runPlan(graph, report, cpu), runPlan(graph, withoutFusedOperands(report), cpu),
               toleranceOf(DType::BF16).relative, "");
  }
}

TEST_P(FusedOperands, AreTheSameOnTheReference) {
  const auto reference = makeReferenceBackend();
  for (const Pipeline& pipeline : pipelines()) {
    const Graph graph = graphOf(pipeline, DType::BF16);
    const FusionReport report = fusedFor(graph, cpu::makeCpuBackend({.threads = 2}));
    const RunResults actual = runPlan(graph, report, reference);
    const RunResults expected = runPlan(graph, withoutFusedOperands(report), reference);
    if (quantizesUnrounded(graph, report))
      EXPECT_EQ(differenceOfNextCodes(actual, expected), "") << pipeline.label;
    else
      EXPECT_TRUE(actual == expected) << pipeline.label;
  }
}

/// Which steps do so: activations and norms where the scale is known beforehand, activations that find an amax.
TEST_P(FusedOperands, FollowFromWhatTransformerEngineHasNotRounded) {
  const std::string recipe = GetParam();
  const auto cpu = cpu::makeCpuBackend({.threads = 2});
  const auto isUnrounded = [&](const std::vector<Link>& links) {
    const Graph graph = chain(DType::BF16, {384, 128}, links, {.recipe = recipe});
    return quantizesUnrounded(graph, fusedFor(graph, cpu));
  };
  EXPECT_EQ(isUnrounded({link("RMSNorm"), linear(128)}), recipe == "DelayedScaling");
  EXPECT_EQ(isUnrounded({link("GELU"), linear(128)}), recipe == "DelayedScaling" || recipe == "Float8CurrentScaling");
  EXPECT_EQ(isUnrounded({linear(128), link("GELU")}), recipe == "DelayedScaling" || recipe == "Float8CurrentScaling");
  EXPECT_FALSE(isUnrounded({link("Dropout"), linear(128)}));
  EXPECT_FALSE(isUnrounded({linear(128), link("RMSNorm")}));
  EXPECT_FALSE(isUnrounded({link("L2Normalization"), linear(128)})) << "which ignores the quantizer behind it";
  for (const char* between : {"Identity", "MakeExtraOutput"})
    EXPECT_FALSE(isUnrounded({link("RMSNorm"), link(between), linear(128)})) << between;
}

/// 32 rows are one block.
TEST_P(FusedOperands, AreThoseOfAnyNumberOfThreads) {
  const Graph graph = chain(DType::BF16, {32, 64}, {link("RMSNorm"), linear(64)}, {.recipe = GetParam()});
  const auto results = [&](int threads) {
    const auto cpu = cpu::makeCpuBackend({.threads = threads});
    return runPlan(graph, fusedFor(graph, cpu), cpu);
  };
  expectSame(graph, results(4), results(1), toleranceOf(DType::F32).relative, "");
}

TEST(FusedOperand, IsOfNumbersThatAreNotRoundedYet) {
  for (const char* operation : {"RMSNorm", "SiLU", "BasicLinear"}) {
    EXPECT_TRUE(handsOnUnrounded(operation, cpu::makeCpuBackend({.threads = 2}))) << operation;
    EXPECT_TRUE(handsOnUnrounded(operation, makeReferenceBackend())) << operation;
  }
}

/// Forward with and without a bias, and back; also in one block of rows and less.
TEST(FusedOperand, IsTheResultOfAGemm) {
  for (const DType dtype : {DType::F32, DType::BF16})
    for (const std::int64_t rows : {0, 16, 384}) {
      const Graph graph =
          chain(dtype, {rows, 64}, {linear(96), link("Bias"), linear(128), linear(64)}, {.recipe = "DelayedScaling"});
      const auto cpu = cpu::makeCpuBackend({.threads = 3});
      const FusionReport report = fusedFor(graph, cpu);
      ASSERT_EQ(report.fusedOperands.size(), 4u) << toTree(graph, report);
      EXPECT_EQ(differenceOfNextCodes(runPlan(graph, report, cpu), runPlan(graph, report, makeReferenceBackend())), "")
          << dtypeName(dtype) << " " << rows;
    }
}

class QuantizeConsumers : public FusedOperands {};

TEST_P(QuantizeConsumers, LeaveOutWhatNobodyElseReads) {
  const Graph graph =
      chain(DType::BF16, {384, 128}, {link("RMSNorm", "norm"), linear(256, "fc")}, {.recipe = GetParam()});
  const FusionReport report = fusedFor(graph, cpu::makeCpuBackend({.threads = 2}));
  const Plan plan = makePlan(graph, report);
  const Plan apart = makePlan(graph, withoutFusedOperands(report));
  EXPECT_EQ(plan.numLaunches() + 1, apart.numLaunches());
  const auto norm = std::ranges::find(plan.steps, "norm", &Step::name);
  ASSERT_NE(norm, plan.steps.end());
  EXPECT_EQ(norm->find({0, OperandKind::Output, 0}), nullptr);
  const std::int64_t copies =
      norm->bytesWritten - std::ranges::find(apart.steps, "norm", &Step::name)->bytesWritten + 384 * 128 * 2;
  EXPECT_EQ(copies, std::ranges::find(apart.steps, "fc.quantize_input", &Step::name)->bytesWritten);
}

/// Rows of such a norm are not those of the tensor, which are quantized.
TEST(FusedOperand, IsNotAskedOfNormsOverSeveralAxes) {
  const auto over = [](const char* norm) {
    return with(link(norm, "norm"), "normalized_shape", std::vector<std::int64_t>{32, 64});
  };
  const auto cpu = cpu::makeCpuBackend({.threads = 2});
  for (const char* recipe : {"DelayedScaling", "Float8CurrentScaling", "MXFP8BlockScaling"})
    for (const char* norm : {"RMSNorm", "LayerNorm"})
      for (const std::vector<Link>& links :
           {std::vector<Link>{over(norm), linear(64)}, std::vector<Link>{link("AddExtraInput"), over(norm), linear(64)},
            std::vector<Link>{linear(64), over(norm)}}) {
        const Graph graph = chain(DType::BF16, {16, 32, 64}, links, {.recipe = recipe});
        const FusionReport report = fusedFor(graph, cpu);
        EXPECT_EQ(report.fusedOperands.size(), 0U) << recipe << " " << norm << "\n" << toTree(graph, report);
        expectSame(graph, runPlan(graph, report, cpu), runPlan(graph, withoutFusedOperands(report), cpu),
                   toleranceOf(DType::BF16).relative, norm);
      }
}

TEST(FusedOperand, KeepsTheStateOfDelayedScaling) {
  const Graph graph = chain(DType::F32, {384, 128}, {link("RMSNorm", "norm"), linear(256, "fc"), link("GELU", "act")},
                            {.recipe = "DelayedScaling"});
  const auto cpu = cpu::makeCpuBackend({.threads = 2});
  const FusionReport report = fusedFor(graph, cpu);
  ASSERT_EQ(report.fusedOperands.size(), 2u);
  EXPECT_EQ(statesOfQuantizers(graph, report, cpu), statesOfQuantizers(graph, withoutFusedOperands(report), cpu));
}

/// The pass that joins the gradients of queries, keys and values hands them on as they are.
TEST(FusedOperand, IsNoGradientOfASplitWithRotaryEmbeddings) {
  std::vector<Link> links = llamaAttention().links;
  links.pop_back();  // the attention
  links.insert(links.begin() + 1, link("Bias", "bias"));
  for (const char* const recipe : {"DelayedScaling", "Float8CurrentScaling"}) {
    const Graph graph =
        chain(DType::BF16, {16, 2, 16}, links, {.extraOutputs = {"rope_q.y", "split.y2"}, .recipe = recipe});
    const auto cpu = cpu::makeCpuBackend({.threads = 2});
    const FusionReport report = fusedFor(graph, cpu);
    ASSERT_TRUE(std::ranges::any_of(report.backward, [](const FusedOperation& entry) {
      return entry.isFused() && entry.rule->name == "BackwardBiasSplitRotary";
    })) << toTree(graph, report);
    EXPECT_EQ(firstDifference(runPlan(graph, report, cpu), runPlan(graph, withoutFusedOperands(report), cpu), 0.0), "")
        << toTree(graph, report);
  }
}

std::string nameOfRecipe(const ::testing::TestParamInfo<const char*>& test) { return test.param; }

INSTANTIATE_TEST_SUITE_P(Recipes, FusedOperands,
                         ::testing::Values("DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling",
                                           "MXFP8BlockScaling"),
                         nameOfRecipe);

INSTANTIATE_TEST_SUITE_P(Recipes, QuantizeConsumers,
                         ::testing::Values("DelayedScaling", "Float8BlockScaling", "MXFP8BlockScaling"), nameOfRecipe);

}  // namespace
}  // namespace fuseline
