// Elementwise steps with fused quantization, in tiles and by separate kernels: the same bits as with a separate step,
// or, if the quantized values follow from unrounded numbers, values that differ by at most one step of the format.
// Compiled twice: for the SIMT harness and for a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "tests/support/compare.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/handed_codes.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

struct Pipeline {
  const char* label;
  std::vector<Link> links;
  std::size_t numFusedOperands;
  std::vector<DType> dtypes = {DType::BF16};
  /// The upstream GEMM goes through an activation that could find an amax itself.
  std::size_t numEpiloguesInFront = 0;
  /// Fused quantizations of norm gradients.
  std::size_t numNormGradients = 0;
};

/// Gated and plain activations, gradients of downstream biases, chains with a mask, several consumers and more than a
/// kernel supports.
std::vector<Pipeline> pipelines() {
  return {
      {"gate", {linear(256), link("SwiGLU"), linear(128)}, 2},
      {"gate behind a bias", {linear(256), link("Bias"), link("GEGLU"), link("Dropout"), linear(128)}, 2},
      {"gate of wide rows", {linear(512), link("SwiGLU"), linear(128)}, 2, {DType::BF16, DType::F32}},
      {"gate of a sum", {linear(256), link("AddExtraInput"), link("SwiGLU"), linear(128)}, 2},
      {"gate and scaled rows", {linear(256), link("ScaledSwiGLU"), linear(128)}, 2},
      {"biases",
       {linear(128), link("Bias"), link("GELU"), linear(128), link("Bias"), link("ReLU")},
       3,
       {DType::BF16},
       1},
      {"chain", {link("GELU"), link("ConstantScale"), linear(128), link("Dropout"), link("SiLU")}, 2},
      {"two readers",
       {link("GELU", "a"), linear(128, "q"), reading("a.y", linear(128, "k")), link("AddExtraInput", "add", "q.y")},
       2},
      {"norm", {link("RMSNorm"), linear(256)}, 1},
      {"sum and norm", {link("AddExtraInput"), link("LayerNorm"), linear(128)}, 1},
      {"branch and norm",
       {link("MakeExtraOutput", "save"), link("LayerNorm", "a"), linear(128, "b"),
        link("AddExtraInput", "c", "save.extra"), link("RMSNorm", "d"), linear(128, "e")},
       3,
       {DType::BF16, DType::F32},
       0,
       1},
      {"norm of two readers", {link("RMSNorm", "a"), linear(128, "q"), reading("a.y", linear(128, "k"))}, 2},
      {"norm of five readers",
       {link("L2Normalization", "a"), linear(128, "b"), reading("a.y", linear(128, "c")),
        reading("a.y", linear(128, "d")), reading("a.y", linear(128, "e")), reading("a.y", linear(128, "f"))},
       5},
      {"five readers",
       {link("GELU", "a"), linear(128, "b"), reading("a.y", linear(128, "c")), reading("a.y", linear(128, "d")),
        reading("a.y", linear(128, "e")), reading("a.y", linear(128, "f"))},
       5},
  };
}

class CudaFusedOperands : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const Verdict runs = runsRecipe(GetParam()); !runs) GTEST_SKIP() << runs.reason();
  }

  static Graph graphOf(const Pipeline& pipeline, DType dtype) {
    const std::int64_t rows = std::string_view(GetParam()) == "Float8BlockScaling" ? 256 : 160;
    return chain(dtype, {rows, 128}, pipeline.links, {.recipe = GetParam()});
  }

  /// Gradients of biases are added in another order.
  static void expectSame(const Graph& graph, const FusionReport& report, RunResults actual, RunResults expected,
                         DType dtype, const std::string& label) {
    if (quantizesUnrounded(graph, report)) {
      EXPECT_EQ(differenceOfNextCodes(actual, expected), "") << label;
      return;
    }
    EXPECT_EQ(differenceOfCodes(actual, expected, toleranceOf(dtype).relative), "") << label;
    if (!multipliesExactly()) return;
    for (const Node& node : graph.nodes())
      if (node.operation->name == "Bias")
        for (RunResults* const results : {&actual, &expected}) results->erase(node.parameterGradientName(0));
    EXPECT_TRUE(actual == expected) << label;
  }

  static bool hasBlocks() { return std::string_view(GetParam()).ends_with("BlockScaling"); }

  /// Copies are worth more than an epilogue, an amax is not. With scales of blocks gradients of norms have none.
  static std::size_t fusedOperandsOf(const Pipeline& pipeline) {
    const bool isOfAmaxes = std::string_view(GetParam()) == "Float8CurrentScaling";
    return pipeline.numFusedOperands - (isOfAmaxes ? pipeline.numEpiloguesInFront : 0) -
           (hasBlocks() ? pipeline.numNormGradients : 0);
  }

  /// mostFusedOperands: pipelines with more are left out.
  static void expectSameOn(const std::shared_ptr<Backend>& backend, const char* how, std::size_t mostFusedOperands) {
    for (const Pipeline& pipeline : pipelines()) {
      if (pipeline.numFusedOperands > mostFusedOperands) continue;
      for (const DType dtype : pipeline.dtypes) {
        const Graph graph = graphOf(pipeline, dtype);
        const FusionReport report = fusedFor(graph, backend);
        ASSERT_EQ(report.fusedOperands.size(), fusedOperandsOf(pipeline)) << pipeline.label << "\n"
                                                                          << toTree(graph, report);
        expectSame(graph, report, runPlan(graph, report, backend),
                   runPlan(graph, withoutFusedOperands(report), backend), dtype,
                   fmt::format("{} in {}, {}", pipeline.label, dtypeName(dtype), how));
      }
    }
  }
};

/// A scale that needs the amax first finds no result to quantize there.
TEST_P(CudaFusedOperands, OfABiasGiveTheSameBits) {
  const std::size_t numFusedOperands = std::string_view(GetParam()) == "Float8CurrentScaling" ? 0 : 1;
  const auto backend = *compilingCudaTestBackend();
  for (const DType dtype : {DType::BF16, DType::F32}) {
    const Graph graph = graphOf({"bias", {linear(256), link("Bias")}, numFusedOperands}, dtype);
    const FusionReport report = fusedFor(graph, backend);
    ASSERT_EQ(report.fusedOperands.size(), numFusedOperands) << toTree(graph, report);
    expectSame(graph, report, runPlan(graph, report, backend), runPlan(graph, withoutFusedOperands(report), backend),
               dtype, "bias");
  }
}

TEST_P(CudaFusedOperands, GiveTheSameBitsInTiles) {
  expectSameOn(*compilingCudaTestBackend(), "generated", 3);  // number that a kernel of tiles supports
}

TEST_P(CudaFusedOperands, OfExpertsGiveTheSameBits) {
  const std::size_t numFusedOperands = std::string_view(GetParam()) == "Float8CurrentScaling" ? 0 : 1;
  const auto backend = *cudaTestBackend();
  for (const std::vector<std::string>& outputs : {std::vector<std::string>(), {"permute.y"}}) {
    const Graph graph =
        chain(DType::BF16, {200, 128}, expertLinks(128), {.extraOutputs = outputs, .recipe = GetParam()});
    const FusionReport report = fusedFor(graph, backend);
    ASSERT_EQ(report.fusedOperands.size(), numFusedOperands) << toTree(graph, report);
    expectSame(graph, report, runPlan(graph, report, backend), runPlan(graph, withoutFusedOperands(report), backend),
               DType::BF16, std::to_string(outputs.size()));
    EXPECT_EQ(statesOfQuantizers(graph, report, backend),
              statesOfQuantizers(graph, withoutFusedOperands(report), backend));
  }
}

TEST_P(CudaFusedOperands, GiveTheSameBitsWithoutACompiler) { expectSameOn(*cudaTestBackend(), "interpreted", 5); }

TEST_P(CudaFusedOperands, KeepTheStatesOfQuantizers) {
  const std::shared_ptr<Backend> backend = *compilingCudaTestBackend();
  const Graph graph = graphOf(pipelines()[1], DType::F32);
  const FusionReport report = fusedFor(graph, backend);
  EXPECT_EQ(statesOfQuantizers(graph, report, backend),
            statesOfQuantizers(graph, withoutFusedOperands(report), backend));
}

/// Rows that a warp or a block holds, with one or two packets per thread, whole and in part, and rows that are not
/// held.
TEST_P(CudaFusedOperands, OfNormsGiveTheSameBitsForRowsOfAnyLength) {
  const std::shared_ptr<Backend> backend = *cudaTestBackend();
  const std::int64_t rows = std::string_view(GetParam()) == "Float8BlockScaling" ? 128 : 32;
  const auto expectSameFor = [&](ExecutionMode pass, std::int64_t cols, const std::vector<Link>& between) {
    std::vector<Link> links = {linear(cols)};
    links.insert(links.end(), between.begin(), between.end());
    links.push_back(linear(128));
    const Graph graph = chain(DType::BF16, {rows, 128}, links, {.pass = pass, .recipe = GetParam()});
    const FusionReport report = fusedFor(graph, backend);
    ASSERT_EQ(report.fusedOperands.size(), pass == ExecutionMode::Inference || hasBlocks() ? 1u : 2u)
        << toTree(graph, report);
    expectSame(graph, report, runPlan(graph, report, backend), runPlan(graph, withoutFusedOperands(report), backend),
               DType::BF16, std::to_string(cols));
  };
  for (const std::int64_t cols : {128, 384, 640, 1152, 2176, 4224, 8320, 16512})
    expectSameFor(ExecutionMode::Inference, cols, {link("LayerNorm")});
  for (const std::int64_t cols : {384, 640, 2176, 8320})
    expectSameFor(ExecutionMode::Training, cols, {link("LayerNorm")});
  for (const std::int64_t cols : {384, 16512})
    expectSameFor(ExecutionMode::Inference, cols, {link("Dropout"), link("AddExtraInput"), link("RMSNorm")});
}

/// Rows of a table that are normalized while they are looked up have the bits of separate steps.
TEST_P(CudaFusedOperands, OfLookedUpRowsGiveTheSameBits) {
  const std::shared_ptr<Backend> backend = *cudaTestBackend();
  const std::int64_t rows = std::string_view(GetParam()) == "Float8BlockScaling" ? 128 : 32;
  for (const std::int64_t cols : {128, 640, 8320, 16512})
    for (const std::vector<std::string>& outputs : {std::vector<std::string>(), {"embed.y"}}) {
      const Link embed = with(reading("route.indices", link("Embedding", "embed")), "num_embeddings", std::int64_t{16});
      const Graph graph =
          chain(DType::BF16, {rows, 16},
                {link("TopKRouter", "route"), with(with(embed, "embedding_dim", cols), "dtype", std::string("bf16")),
                 link("LayerNorm", "norm"), linear(128)},
                {.pass = ExecutionMode::Inference,
                 .inputRequiresGradient = false,
                 .extraOutputs = outputs,
                 .recipe = GetParam()});
      const FusionReport report = fusedFor(graph, backend);
      ASSERT_EQ(report.fusedOperands.size(), 1u) << toTree(graph, report);
      expectSame(graph, report, runPlan(graph, report, backend), runPlan(graph, unfused(graph), backend), DType::BF16,
                 std::to_string(cols));
    }
}

INSTANTIATE_TEST_SUITE_P(Recipes, CudaFusedOperands,
                         ::testing::Values("DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling",
                                           "MXFP8BlockScaling"),
                         [](const auto& test) { return std::string(test.param); });

/// Without a compiler for generated code, results are stored, rounded, and quantized then.
bool compilesPrograms(const Backend& backend) {
  const auto details = backend.device().details;
  return std::ranges::none_of(details, [](const auto& detail) {
    return detail.first == "elementwise code" && detail.second.starts_with("interpreted");
  });
}

TEST(CudaFusedOperand, IsOfNumbersThatAreNotRoundedYet) {
  if (const Verdict runs = runsRecipe("DelayedScaling"); !runs) GTEST_SKIP() << runs.reason();
  if (!compilesPrograms(**compilingCudaTestBackend())) GTEST_SKIP() << "Generated code is not compiled here.";
  for (const char* operation : {"RMSNorm", "SiLU", "BasicLinear"})
    EXPECT_TRUE(handsOnUnrounded(operation, *compilingCudaTestBackend())) << operation;
}

/// Results of GEMMs, with and without a bias, and gradients; a float32 bias is one that cuBLASLt does not add to codes.
TEST(CudaFusedOperand, IsTheResultOfAGemm) {
  if (const Verdict runs = runsRecipe("DelayedScaling"); !runs) GTEST_SKIP() << runs.reason();
  const std::shared_ptr<Backend> backend = *compilingCudaTestBackend();
  for (const DType dtype : {DType::F32, DType::BF16})
    for (const std::int64_t rows : {0, 16, 272}) {
      const Graph graph = chain(dtype, {rows, 64}, {linear(144), link("Bias"), linear(128), linear(64)},
                                {.inputRequiresGradient = false, .recipe = "DelayedScaling"});
      const FusionReport report = fusedFor(graph, backend);
      ASSERT_EQ(report.fusedOperands.size(), 3u) << toTree(graph, report);
      const RunResults expected = runPlan(graph, report, makeReferenceBackend());
      EXPECT_EQ(differenceOfNextCodes(runPlan(graph, report, backend), expected), "")
          << dtypeName(dtype) << " " << rows;
    }
}

/// The input gradient of a linear op whose step also scales it.
TEST(CudaFusedOperand, IsTheGradientOfAScaledLinear) {
  if (const Verdict runs = runsRecipe("DelayedScaling"); !runs) GTEST_SKIP() << runs.reason();
  const std::shared_ptr<Backend> backend = *compilingCudaTestBackend();
  const Graph graph = chain(DType::BF16, {32, 64}, {linear(48), linear(96), with(link("ConstantScale"), "scale", 2.0)},
                            {.inputRequiresGradient = false, .recipe = "DelayedScaling"});
  const FusionReport report = fusedFor(graph, backend);
  const auto isFused = [](const FusedOperation& entry) {
    return entry.isFused() && entry.rule->name == "BackwardLinearScale";
  };
  ASSERT_TRUE(std::ranges::any_of(report.backward, isFused)) << toTree(graph, report);
  const auto isGradient = [](const FusedOperand& operand) { return operand.type == TensorType::GradOutput; };
  EXPECT_EQ(std::ranges::count_if(report.fusedOperands, isGradient), 1) << toTree(graph, report);
  EXPECT_EQ(differenceOfNextCodes(runPlan(graph, report, backend), runPlan(graph, report, makeReferenceBackend())), "");
}

/// A plan that keeps all tensors needs the result as it is, too.
TEST(CudaFusedOperand, IsTheResultOfAGemmThatIsKept) {
  if (const Verdict runs = runsRecipe("DelayedScaling"); !runs) GTEST_SKIP() << runs.reason();
  const std::shared_ptr<Backend> backend = *compilingCudaTestBackend();
  const Graph graph = chain(DType::BF16, {32, 64}, {linear(64, "a"), linear(64, "b")},
                            {.pass = ExecutionMode::Inference, .recipe = "DelayedScaling"});
  const Plan plan = makePlan(graph, fusedFor(graph, backend), {.keepIntermediates = true});
  const auto resultsOn = [&](const std::shared_ptr<Backend>& device) {
    const auto executor = std::move(*Executor::create(device, graph, plan, *makeBindings(graph, 1)));
    EXPECT_TRUE(executor->run());
    RunResults results;
    for (const Step& step : plan.steps)
      if (const StepOperand* const y = step.find({0, OperandKind::Output, 0}); y && step.kernel == "BasicLinear")
        results[step.name] = executor->read(plan.tensors[static_cast<std::size_t>(y->tensor)].name)->toDoubles();
    return results;
  };
  ASSERT_EQ(resultsOn(backend).size(), 2u);
  EXPECT_EQ(firstDifferenceInNorm(resultsOn(backend), resultsOn(makeReferenceBackend()), 0.03), "");
}

/// Not where another op reads the result as it is, where the scale follows from it, or where the GEMM has more to do.
TEST(CudaFusedOperand, IsNoResultOfAGemmThatOthersRead) {
  if (const Verdict runs = runsRecipe("DelayedScaling"); !runs) GTEST_SKIP() << runs.reason();
  const auto count = [](std::vector<Link> links, const ChainOptions& options) {
    const Graph graph = chain(DType::BF16, {64, 64}, std::move(links), options);
    return fusedFor(graph, *compilingCudaTestBackend()).fusedOperands.size();
  };
  const ChainOptions inference{.pass = ExecutionMode::Inference, .recipe = "DelayedScaling"};
  ChainOptions output = inference, current = inference;
  output.extraOutputs = {"a.y"};
  current.recipe = "Float8CurrentScaling";
  EXPECT_EQ(count({linear(64, "a"), linear(64)}, inference), 1u);
  EXPECT_EQ(count({linear(64, "a"), linear(64)}, output), 0u);
  EXPECT_EQ(count({linear(64, "a"), linear(64)}, current), 0u);
  EXPECT_EQ(count({linear(64, "a"), linear(64), link("AddExtraInput", "", "a.y")}, inference), 0u);
  EXPECT_EQ(count({linear(64, "a"), link("Bias"), link("AddExtraInput"), linear(64)}, inference), 0u);
}

/// Rows of one tile, of several, and none; parts of blocks do not occur, because linear ops do not support them.
TEST(CudaFusedOperand, WorksForEveryNumberOfRowsThatARecipeTakes) {
  if (const Verdict runs = runsRecipe("DelayedScaling"); !runs) GTEST_SKIP() << runs.reason();
  const std::shared_ptr<Backend> backend = *compilingCudaTestBackend();
  for (const std::int64_t rows : {0, 16, 112, 128, 272}) {
    const Graph graph = chain(DType::BF16, {rows, 144},
                              {link("GELU"), linear(288), link("Bias"), link("SwiGLU"), linear(16), link("SiLU")},
                              {.recipe = "DelayedScaling"});
    const FusionReport report = fusedFor(graph, backend);
    ASSERT_EQ(report.fusedOperands.size(), 4u);
    const RunResults expected = compilesPrograms(*backend) ? runPlan(graph, report, makeReferenceBackend())
                                                           : runPlan(graph, withoutFusedOperands(report), backend);
    EXPECT_EQ(differenceOfCodes(runPlan(graph, report, backend), expected, toleranceOf(DType::BF16).relative), "")
        << rows;
  }
}

}  // namespace
}  // namespace fuseline
