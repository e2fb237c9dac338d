// Whole plans on the CUDA kernels against the double-precision reference: every basic op, every rule's pipelines and
// random ones, every dtype, odd sizes, one row and none. Compiled twice: for the SIMT harness and for a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/numerics/minifloat.h"
#include "core/ops/catalog.h"
#include "core/plan/plan.h"
#include "core/quant/apply_recipe.h"
#include "core/quant/attention_quantizers.h"
#include "core/quant/copy_memory.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "tests/support/attention_layers.h"
#include "tests/support/compare.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/handed_codes.h"
#include "tests/support/op_samples.h"
#include "tests/support/pipelines.h"
#include "tests/support/random_pipelines.h"
#include "tests/support/rule_samples.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// Last axes are even, so that gated ops accept them: odd halves, whole packets, several blocks, rows of a block.
const std::vector<Shape> kShapes = {{0, 16},   {1, 2}, {6, 16},   {7, 62},  {3, 2, 34},
                                    {70, 272}, {600},  {2, 1040}, {3, 1026}};

/// As on the CPU: a chain in f16 rounds more often than its tolerance allows for.
double chainTolerance(DType dtype) { return dtype == DType::F16 ? 8 * 0x1p-11 : toleranceOf(dtype).relative; }

std::shared_ptr<Backend> backendUnderTest() { return *cudaTestBackend(); }

/// Skips where there is no GPU, and this is not the harness.
class OnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto backend = cudaTestBackend(); !backend) GTEST_SKIP() << backend.error().message;
  }
};

/// Empty, or why the CUDA backend does not run a step of the plan.
std::string refusal(const Graph& graph, const FusionReport& report) {
  const auto backend = backendUnderTest();
  for (const Step& step : makePlan(graph, report).steps) {
    if (step.isView) continue;
    if (const Verdict verdict = backend->supports({graph, step.kernel, step.phase, step.nodes}); !verdict)
      return verdict.reason();
  }
  return "";
}

void expectLikeReference(const Graph& graph, const FusionReport& report, double relative, const std::string& label) {
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  const RunResults actual = runPlan(graph, report, backendUnderTest());
  EXPECT_EQ(differenceFromReference(graph, actual, expected, relative), "") << label << "\n" << toString(graph);
}

/// The same for GEMMs of quantized factors. exact: the tolerance for exact GEMMs.
void expectCodesLikeReference(const Graph& graph, const FusionReport& report, double exact, const std::string& label) {
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  const RunResults actual = runPlan(graph, report, backendUnderTest());
  if (std::ranges::any_of(graph.nodes(), isQuantizedAttention)) {
    EXPECT_EQ(differenceFromReference(graph, actual, expected, exact), "") << label << "\n" << toString(graph);
    return;
  }
  EXPECT_EQ(quantizesUnrounded(graph, report) ? differenceOfNextCodes(actual, expected)
                                              : differenceOfCodes(actual, expected, exact),
            "")
      << label << "\n"
      << toString(graph);
}

/// x of a chain's graph: finite except for one element in the middle.
NamedTensors mainInputWith(double value, const Graph& graph) {
  const Value& x = graph.value(graph.inputs().front());
  std::vector<double> values;
  for (std::int64_t i = 0; i < x.spec.numElements(); ++i) values.push_back(0.125 * static_cast<double>(i % 13) - 0.75);
  values[values.size() / 2] = value;
  return {{x.name, Tensor::fromDoubles(x.spec, values)}};
}

class CudaOps : public OnCuda, public ::testing::WithParamInterface<const FusibleOperation*> {};

TEST_P(CudaOps, TrainLikeTheReference) {
  const std::string& name = GetParam()->name;
  for (const DType dtype : kFloatTypes)
    for (const Shape& shape : kShapes) {
      const Graph graph = chain(dtype, shape, {sampleLink(name)});
      if (const std::string reason = refusal(graph, unfused(graph)); !reason.empty()) GTEST_SKIP() << reason;
      expectLikeReference(graph, unfused(graph), toleranceOf(dtype).relative,
                          name + " in " + std::string(dtypeName(dtype)));
    }
}

TEST_P(CudaOps, PropagateNanAndInfinityLikeTheReference) {
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    for (const Shape& shape : {Shape{1, 2}, Shape{7, 62}}) {
      const Graph graph = chain(DType::BF16, shape, {sampleLink(GetParam()->name)});
      if (const std::string reason = refusal(graph, unfused(graph)); !reason.empty()) GTEST_SKIP() << reason;
      const NamedTensors x = mainInputWith(value, graph);
      const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend(), 1, x);
      EXPECT_EQ(firstNonFiniteDifference(runPlan(graph, unfused(graph), backendUnderTest(), 1, x), expected), "")
          << value << "\n"
          << toString(graph);
    }
}

INSTANTIATE_TEST_SUITE_P(Catalog, CudaOps, ::testing::ValuesIn(basicOperations()),
                         [](const auto& test) { return test.param->name; });

class CudaNorms : public OnCuda, public ::testing::WithParamInterface<const char*> {};

/// Warps and blocks that hold a row in packets, one or two per thread, whole and in part; rows that are not held,
/// forward or backward; and rows without whole packets. A block has several of them.
TEST_P(CudaNorms, OfRowsOfAnyLengthAreLikeTheReference) {
  for (const std::int64_t cols :
       {8, 256, 264, 512, 520, 1024, 1032, 2048, 2056, 4104, 8192, 8200, 16392, 1023, 1025, 2061}) {
    const Graph graph = chain(DType::BF16, {cols < 4096 ? 37 : 5, cols}, {link(GetParam())});
    expectLikeReference(graph, unfused(graph), toleranceOf(DType::BF16).relative, GetParam());
  }
}

/// The sum is stored and its gradients are added on the way.
TEST_P(CudaNorms, OfSumsOfAnyLengthAreLikeTheReference) {
  for (const std::int64_t cols : {256, 520, 1032, 4104, 8200, 16392, 1025}) {
    const Graph graph =
        chain(DType::BF16, {5, cols},
              {link("MakeExtraOutput", "save"), link("GELU"), link("AddExtraInput", "add", "save.extra"),
               link("MakeExtraOutput", "keep"), link(GetParam())},
              {.extraOutputs = {"keep.extra"}});
    const FusionReport report = std::move(*fuse(graph, {.capabilities = capabilitiesOf(backendUnderTest())}));
    expectLikeReference(graph, report, chainTolerance(DType::BF16), GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Catalog, CudaNorms, ::testing::Values("RMSNorm", "LayerNorm", "L2Normalization"),
                         [](const auto& test) { return std::string(test.param); });

FusionReport fuseWith(const FusionRule& rule, const Graph& graph) {
  static RuleCatalog catalog;
  catalog = {};
  EXPECT_TRUE(catalog.registerFusion(rule));
  return std::move(*fuse(
      graph,
      {.switches = everythingAsked(catalog), .capabilities = capabilitiesOf(backendUnderTest()), .rules = &catalog}));
}

/// Norms of te.ops cast their input to the weight's dtype. Numbers that bf16 cannot tell from 1 have no variance then.
TEST_F(OnCuda, NormsRoundTheirInputToTheDTypeOfTheWeightFirst) {
  const Link norm = with(link("LayerNorm", "norm"), "dtype", std::string("bf16"));
  for (const Shape& shape : {Shape{6, 16}, Shape{7, 62}, Shape{2, 1040}}) {
    const Graph graph = chain(DType::F32, shape, {norm});
    std::vector<double> values;
    for (std::int64_t i = 0; i < numElements(shape); ++i) values.push_back(i % 2 == 0 ? 1.0 : 1.0 + 0x1p-11);
    const NamedTensors x = {{"x", Tensor::fromDoubles({DType::F32, shape}, values)}};
    const RunResults results = runPlan(graph, unfused(graph), backendUnderTest(), 1, x);
    for (const char* name : {"y", "grad.norm.weight"})
      for (const double value : results.at(name)) EXPECT_EQ(value, 0.0) << name << " of " << toString(shape);
  }
}

/// The sums of both halves have one item each, and must not share its place.
TEST_F(OnCuda, GatesOfOneColumnSumBothHalves) {
  const FusionRule& rule = *builtinRules().find("BackwardBiasSwiGLU");
  for (const DType dtype : kFloatTypes) {
    const Graph graph = chain(dtype, {70, 2}, {link("Bias"), link("SwiGLU")});
    expectLikeReference(graph, fuseWith(rule, graph), chainTolerance(dtype), std::string(dtypeName(dtype)));
  }
}

std::set<std::string> kernelsOf(const Graph& graph, const FusionReport& report) {
  std::set<std::string> kernels;
  for (const Step& step : makePlan(graph, report).steps) kernels.insert(step.kernel);
  return kernels;
}

class CudaRules : public OnCuda, public ::testing::WithParamInterface<const FusionRule*> {};

/// A norm in float32 is not the reference's to the last bit, which may be another code.
constexpr double kNormsBeforeCodes = 4 * 1.6e-2;

/// In FP4 another code is further away.
double toleranceOfCodes(const std::string& recipe) {
  return recipe == "NVFP4BlockScaling" ? 4 * kNormsBeforeCodes : kNormsBeforeCodes;
}

/// Attention rounds probabilities and gradients of scores before the products that read them.
double toleranceOfLinks(const RuleSample& sample) {
  return std::ranges::count(sample.links, "DotProductAttention", &Link::operation) > 0 ? 4.0 : 1.0;
}

/// The sample's own shape is one that its recipe supports: only then are tensors quantized.
TEST_P(CudaRules, RunFusedLikeTheReference) {
  bool isReached = false;
  for (const RuleSample& sample : ruleSamples(GetParam()->name))
    for (const DType dtype : kFloatTypes)
      for (const Shape& shape : std::set<Shape>{sample.shape, {6, 16}, {1, 16}, {0, 16}, {70, 16}}) {
        if (!runsRecipe(sample.options.recipe)) continue;
        const Graph graph = chain(dtype, shape, sample.links, sample.options);
        const FusionReport report = fuseWith(*GetParam(), graph);
        isReached = isReached || kernelsOf(graph, report).contains(GetParam()->becomes);
        if (!refusal(graph, report).empty()) continue;
        const std::string label = sample.label + " of " + toString(shape);
        if (sample.options.recipe.empty())
          expectLikeReference(graph, report, toleranceOfActivations(chainTolerance(dtype)) * toleranceOfLinks(sample),
                              label);
        else
          expectCodesLikeReference(
              graph, report, shape == sample.shape ? toleranceOfCodes(sample.options.recipe) : chainTolerance(dtype),
              label);
      }
  if (!isReached) GTEST_SKIP() << "The CUDA backend refuses every sample of this rule.";
}

INSTANTIATE_TEST_SUITE_P(RuleBook, CudaRules, ::testing::ValuesIn(builtinRules().all()),
                         [](const auto& test) { return test.param->name; });

class CudaKernels : public OnCuda {};

TEST_F(CudaKernels, AddTheGradientsOfABranch) {
  for (const DType dtype : kFloatTypes) {
    const Graph graph =
        chain(dtype, {5, 16}, {link("GELU", "a"), link("GELU", "b"), link("AddExtraInput", "c", "a.y")});
    ASSERT_TRUE(kernelsOf(graph, unfused(graph)).contains("accumulate"));
    expectLikeReference(graph, unfused(graph), chainTolerance(dtype), "a branch");
  }
}

TEST_F(CudaKernels, AddTheGradientsOfLinearsOfOneInputInTheirGemms) {
  for (const DType dtype : kFloatTypes) {
    const Graph graph = chain(dtype, {5, 16}, linearsOfOneInput().links);
    const FusionReport fused = *fuse(graph, {.capabilities = capabilitiesOf(backendUnderTest())});
    for (const FusionReport& report : {unfused(graph), fused}) {
      EXPECT_FALSE(kernelsOf(graph, report).contains("accumulate"));
      expectLikeReference(graph, report, chainTolerance(dtype), "linears of one input");
    }
  }
}

TEST_F(CudaKernels, RunRandomPipelinesLikeTheReferenceInFloat32) {
  const auto backend = backendUnderTest();
  EXPECT_TRUE(rc::check("fused for the GPU equals the unfused reference", [&] {
    const RandomPipeline pipeline = randomPipeline();
    const auto rows = *rc::gen::inRange<std::int64_t>(0, 40);
    const Graph graph = chain(DType::F32, {rows, 16}, pipeline.links, pipeline.options);
    RC_LOG() << toString(graph);
    const FusionReport report =
        std::move(*fuse(graph, {.switches = pipeline.switches, .capabilities = capabilitiesOf(backend)}));
    RC_PRE(refusal(graph, report).empty());
    const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
    RC_ASSERT(firstDifference(runPlan(graph, report, backend), expected, 1e-3) == "");
  }));
}

Graph under(const char* recipeName, Graph graph, const Attributes& fields = {},
            std::vector<RoleOverride> overrides = {}) {
  const Result<Recipe> recipe = Recipe::create(*findRecipe(recipeName), fields, std::move(overrides));
  std::vector<Diagnostic> diagnostics;
  Graph quantized = applyRecipe(std::move(graph), *recipe, diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.front().message;
  return quantized;
}

class CudaRecipes : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const Verdict runs = runsRecipe(GetParam()); !runs) GTEST_SKIP() << runs.reason();
  }
};

/// In FP4 a last bit of the first GEMM's result changes the second one's quantized factor, and so the result.
std::vector<Link> productsFor(const std::string& recipe) {
  if (recipe == "NVFP4BlockScaling") return {linear(128, "fc")};
  return {linear(128, "fc"), link("GELU"), linear(128, "out")};
}

TEST_P(CudaRecipes, MultiplyLikeTheReference) {
  for (const DType dtype : kFloatTypes) {
    const Graph graph = under(GetParam(), chain(dtype, {128, 256}, productsFor(GetParam())));
    ASSERT_EQ(refusal(graph, unfused(graph)), "");
    expectCodesLikeReference(graph, unfused(graph), 4 * chainTolerance(dtype), std::string(dtypeName(dtype)));
  }
}

void expectLikeReferenceUnder(const Graph& graph, const std::string& label) {
  ASSERT_EQ(refusal(graph, unfused(graph)), "") << label;
  expectCodesLikeReference(graph, unfused(graph), 4 * chainTolerance(DType::BF16), label);
}

/// Backward reads forward's quantized tensors, dequantized, or none at all.
TEST_P(CudaRecipes, MultiplyInBackwardWhatTheOverrideSays) {
  for (const char* const override : {"dequantized", "high_precision"}) {
    Attributes fields;
    fields.set("backward_override", std::string(override));
    if (!Recipe::create(*findRecipe(GetParam()), fields)) continue;  // not every recipe can have it
    expectLikeReferenceUnder(under(GetParam(), chain(DType::BF16, {128, 256}, {linear(128, "fc")}), fields), override);
  }
}

/// One operand of each GEMM in turn is not quantized.
TEST_P(CudaRecipes, MultiplyCodesWithPlainNumbers) {
  for (const OperandRole role : operandRoles())
    expectLikeReferenceUnder(under(GetParam(), chain(DType::BF16, {128, 256}, {linear(128, "fc")}), {},
                                   {{.tensor = role.tensor, .gemm = role.gemm, .format = std::nullopt}}),
                             std::string(roleName(role.tensor)) + " in " + std::string(roleName(role.gemm)));
}

/// Kernel::ways of all steps.
std::vector<std::string> waysOf(const Graph& graph) {
  const Plan plan = makePlan(graph, unfused(graph));
  const auto executor = Executor::create(backendUnderTest(), graph, plan, *makeBindings(graph, 1));
  if (!executor) throw std::runtime_error(executor.error().message);
  std::vector<std::string> ways;
  for (std::size_t step = 0; step < plan.steps.size(); ++step)
    std::ranges::copy((*executor)->ways(step), std::back_inserter(ways));
  return ways;
}

TEST_P(CudaRecipes, SayWhereCodesAreDecoded) {
  const auto numDecoded = [](std::vector<RoleOverride> overrides) {
    const Graph graph =
        under(GetParam(), chain(DType::BF16, {128, 256}, {linear(128, "fc")}), {}, std::move(overrides));
    return std::ranges::count_if(
        waysOf(graph), [](const std::string& way) { return way.starts_with("quantized values are decoded"); });
  };
  EXPECT_EQ(numDecoded({}), 0);
  const OperandRole role = operandRoles().front();
  EXPECT_EQ(numDecoded({{.tensor = role.tensor, .gemm = role.gemm, .format = std::nullopt}}), 1);
}

NamedTensors everyValueOf16Bits(const Graph& graph) {
  const Value& x = graph.value(graph.inputs().front());
  Tensor tensor = Tensor::zeros(x.spec);
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto code = static_cast<std::uint16_t>(bits);
    std::memcpy(tensor.data.data() + std::size_t{bits} * sizeof(code), &code, sizeof(code));
  }
  return {{x.name, std::move(tensor)}};
}

/// The quantized tensors of x, after two runs: with delayed scaling the first run has the scale 1.
std::vector<QuantizedCopy> copiesOfX(const Graph& graph, const std::shared_ptr<Backend>& backend,
                                     const NamedTensors& x) {
  const Plan plan = makePlan(graph, unfused(graph), {.keepIntermediates = true});
  const auto executor = Executor::create(backend, graph, plan, *makeBindings(graph, 1, x));
  if (!executor) throw std::runtime_error(executor.error().message);
  for (int run = 0; run < 2; ++run) EXPECT_TRUE((*executor)->run());
  std::vector<QuantizedCopy> copies;
  for (const PlanTensor& tensor : plan.tensors) {
    if (!tensor.spec.quantized || tensor.name.find("input@") == std::string::npos) continue;
    const Tensor memory = *(*executor)->read(tensor.name);
    copies.push_back(*fromMemory(tensor.spec, memory.data.data()).copy(tensor.spec.quantized->direction));
  }
  return copies;
}

void expectCopiesOfTheReference(const Graph& graph, const NamedTensors& x) {
  const std::vector<QuantizedCopy> expected = copiesOfX(graph, makeReferenceBackend(), x);
  const std::vector<QuantizedCopy> actual = copiesOfX(graph, backendUnderTest(), x);
  ASSERT_EQ(expected.size(), 2u);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(actual[i].data.data, expected[i].data.data);
    EXPECT_EQ(actual[i].scaleInv.data, expected[i].scaleInv.data);
  }
}

TEST_P(CudaRecipes, CastEveryBf16ValueToTheBitsOfTheReference) {
  const Graph graph = under(GetParam(), chain(DType::BF16, {256, 256}, {linear(128, "fc")}));
  expectCopiesOfTheReference(graph, everyValueOf16Bits(graph));
}

/// The float32 numbers halfway between two numbers of E4M3, and the numbers beside them.
std::vector<double> e4m3Borders() {
  std::vector<double> values;
  for (std::uint8_t code = 0; code < 0x7e; ++code) {
    const float border = (E4m3::toFloat(code) + E4m3::toFloat(static_cast<std::uint8_t>(code + 1))) / 2;
    for (const float value : {std::nextafter(border, 0.0F), border, std::nextafter(border, 1000.0F)})
      values.insert(values.end(), {value, -value});
  }
  return values;
}

/// In the first run with the scale 1, in the second with 0.8.
TEST_F(CudaKernels, CastFloat32AtEveryBorderToTheBitsOfTheReference) {
  const Graph graph = under("DelayedScaling", chain(DType::F32, {16, 64}, {linear(32, "fc")}));
  const Value& x = graph.value(graph.inputs().front());
  std::vector<double> values = e4m3Borders();
  values.resize(static_cast<std::size_t>(x.spec.numElements()), 560.0);
  expectCopiesOfTheReference(graph, {{x.name, Tensor::fromDoubles(x.spec, values)}});
}

/// GEMMs of quantized factors with a bias, a residual, a factor, an activation and a branch's gradient.
TEST_P(CudaRecipes, MultiplyLikeTheReferenceInFusedSteps) {
  const auto backend = backendUnderTest();
  const std::vector<Link> residual = {inPlace(link("MakeExtraOutput", "save")), linear(256, "fc"), link("Bias"),
                                      link("AddExtraInput", "add", "save.extra")};
  const std::vector<Link> scaled = {link("MakeExtraOutput", "save"), linear(256, "fc"),
                                    with(link("ConstantScale"), "scale", 0.5),
                                    link("AddExtraInput", "add", "save.extra")};
  const std::vector<Link> activated = {linear(256, "fc"), link("Bias"), link("GELU")};
  std::set<std::string> kernels;
  for (const std::vector<Link>& links : {residual, scaled, activated})
    for (const DType dtype : kFloatTypes) {
      const Graph graph = under(GetParam(), chain(dtype, {128, 256}, links));
      const FusionReport report = std::move(
          *fuse(graph, {.switches = everythingAsked(builtinRules()), .capabilities = capabilitiesOf(backend)}));
      ASSERT_EQ(refusal(graph, report), "");
      kernels.merge(kernelsOf(graph, report));
      EXPECT_EQ(differenceOfCodes(runPlan(graph, report, backend), runPlan(graph, report, makeReferenceBackend()),
                                  4 * chainTolerance(dtype)),
                "")
          << dtypeName(dtype) << "\n"
          << toString(graph);
    }
  for (const char* const kernel : {"linear_epilogue", "linear_backward_add", "linear_backward_scale"})
    EXPECT_TRUE(kernels.contains(kernel)) << kernel;
}

std::unique_ptr<Executor> executorOn(const std::shared_ptr<Backend>& backend, const Graph& graph, const Plan& plan,
                                     const ExecutorOptions& options = {}) {
  auto executor = Executor::create(backend, graph, plan, *makeBindings(graph, 1), {}, options);
  if (!executor) throw std::runtime_error(executor.error().message);
  return std::move(*executor);
}

/// Scales and histories after some runs.
std::map<std::string, std::vector<double>> statesAfter(const Graph& graph, const std::shared_ptr<Backend>& backend) {
  constexpr int kRuns = 3;
  const Plan plan = makePlan(graph, unfused(graph));
  const auto executor = executorOn(backend, graph, plan);
  for (int run = 0; run < kRuns; ++run) EXPECT_TRUE(executor->run());
  std::map<std::string, std::vector<double>> states;
  for (const PlanTensor& tensor : plan.tensors)
    if (tensor.role == TensorRole::QuantizerState) states[tensor.name] = executor->read(tensor.name)->toDoubles();
  return states;
}

/// E4M3 quantizations of the same values with two scales differ by at most this in norm: 2^-4 / sqrt(3) of each value
/// from each. A different last bit in a GEMM's largest value is a different scale.
constexpr double kCodesOfOtherScales = 0.0511;

/// Quantized tensors that a linear reads, and others that are dequantized, in both passes.
TEST_P(CudaRecipes, PassOnQuantizedTensorsLikeTheReference) {
  const Link both = with(link("Quantize"), "backward", true);
  for (const std::vector<Link>& links :
       {std::vector{both}, std::vector{both, linear(128, "fc"), both}, std::vector{link("Bias"), both, link("ReLU")}}) {
    const Graph graph = under(GetParam(), chain(DType::BF16, {128, 256}, links));
    const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
    const RunResults actual = runPlan(graph, unfused(graph), backendUnderTest());
    EXPECT_EQ(differenceOfCodes(actual, expected, toleranceOf(DType::BF16).relative, kCodesOfOtherScales), "")
        << toString(graph);
  }
}

TEST_P(CudaRecipes, KeepTheStatesOfTheReference) {
  const Graph graph = under(GetParam(), chain(DType::BF16, {128, 128}, {linear(128, "fc")}));
  EXPECT_EQ(statesAfter(graph, backendUnderTest()), statesAfter(graph, makeReferenceBackend()));
}

/// Every result and state, run by run; parameters' gradients are added up in main_grad buffers.
TEST_P(CudaRecipes, ReplayWhatTheyRecorded) {
  const Graph graph = under(
      GetParam(), chain(DType::BF16, {128, 128},
                        {with(linear(128, "fc"), "accumulate_into_main_grad", true), link("GELU"), link("Dropout")}));
  const Plan plan = makePlan(graph, unfused(graph));
  const auto replayed = executorOn(backendUnderTest(), graph, plan);
  const auto launched = executorOn(backendUnderTest(), graph, plan, {.replaysLaunches = false});
  for (int run = 0; run < 4; ++run) {
    for (Executor* const executor : {replayed.get(), launched.get()}) EXPECT_TRUE(executor->run());
    for (const PlanTensor& tensor : plan.tensors) {
      if (!isResult(tensor.role) && tensor.role != TensorRole::QuantizerState) continue;
      EXPECT_EQ(replayed->read(tensor.name)->data, launched->read(tensor.name)->data) << tensor.name;
    }
  }
  EXPECT_EQ(replayed->launching(), "captured and replayed");
  EXPECT_EQ(launched->launching(), "");
}

INSTANTIATE_TEST_SUITE_P(Codes, CudaRecipes,
                         ::testing::Values("Float8CurrentScaling", "DelayedScaling", "Float8BlockScaling",
                                           "MXFP8BlockScaling", "NVFP4BlockScaling"),
                         [](const auto& test) { return std::string(test.param); });

/// Multiplied by a number of eleven bits the result is exact in float32, so that there is one rounding, and one right
/// result.
TEST_F(CudaKernels, RoundEveryValueOf16BitsToTheBitsOfTheReference) {
  for (const DType dtype : {DType::BF16, DType::F16})
    for (const double scale : {1.0, 1.0 + 0x1p-10, -0x1.554p-3}) {
      const Graph graph = chain(dtype, {256, 256}, {with(link("ConstantScale"), "scale", scale)});
      const NamedTensors x = everyValueOf16Bits(graph);
      const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend(), 1, x);
      const RunResults actual = runPlan(graph, unfused(graph), backendUnderTest(), 1, x);
      for (const auto& [name, values] : expected)
        for (std::size_t i = 0; i < values.size(); ++i)
          ASSERT_TRUE(actual.at(name)[i] == values[i] || (std::isnan(actual.at(name)[i]) && std::isnan(values[i])))
              << dtypeName(dtype) << " x " << scale << ", " << name << "[" << i << "]: " << actual.at(name)[i]
              << " instead of " << values[i];
    }
}

/// Which widths the library can add a bias to, and how it is aligned, differs between GPUs.
TEST_F(CudaKernels, AddABiasToProductsOfAnyWidth) {
  const auto backend = backendUnderTest();
  for (const std::int64_t width : {1, 7, 8, 17, 264})
    for (const DType dtype : {DType::BF16, DType::F16}) {
      const Graph graph = chain(dtype, {33, 40}, {linear(width, "fc"), link("Bias")});
      const FusionReport report = std::move(
          *fuse(graph, {.switches = everythingAsked(builtinRules()), .capabilities = capabilitiesOf(backend)}));
      ASSERT_TRUE(kernelsOf(graph, report).contains("linear_epilogue"));
      expectLikeReference(graph, report, chainTolerance(dtype), "width " + std::to_string(width));
    }
}

TEST_F(CudaKernels, TimeEveryStepOnTheClockOfTheDevice) {
  const Graph graph = chain(DType::BF16, {48, 80}, {linear(64), link("GELU")});
  const Plan plan = makePlan(graph, unfused(graph));
  const auto executor = executorOn(backendUnderTest(), graph, plan);
  ASSERT_EQ(executor->clock(), StepClock::Events);
  std::vector<std::size_t> steps;
  ASSERT_TRUE(executor->runObserved([&](std::size_t step, double, double durationNs) {
    steps.push_back(step);
    EXPECT_GT(durationNs, 0.0) << plan.steps[step].name;
  }));
  EXPECT_EQ(static_cast<std::int64_t>(steps.size()), plan.numLaunches());
  EXPECT_TRUE(std::ranges::is_sorted(steps));
}

/// Launched one by one, and as recorded: each kernel by itself, and none that belongs to no step.
TEST_F(CudaKernels, AreTracedOneByOne) {
  const Graph graph = chain(DType::BF16, {48, 80}, {linear(64), link("GELU"), linear(32, "out")});
  const Plan plan = makePlan(graph, unfused(graph));
  for (const bool replays : {false, true}) {
    const auto executor =
        executorOn(backendUnderTest(), graph, plan, {.clock = StepClock::Trace, .replaysLaunches = replays});
    if (executor->clock() != StepClock::Trace) GTEST_SKIP() << executor->clockNote();
    for (int run = 0; run < 2; ++run) ASSERT_TRUE(executor->run());
    EXPECT_EQ(executor->launching(), replays ? "captured and replayed" : "");
    double stepsNs = 0.0;
    std::size_t numSteps = 0;
    const Result<RunOutcome> ran = executor->runObserved([&](std::size_t step, double, double durationNs) {
      EXPECT_GT(durationNs, 0.0) << plan.steps[step].name;
      stepsNs += durationNs;
      ++numSteps;
    });
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(static_cast<std::int64_t>(numSteps), plan.numLaunches());
    EXPECT_GE(executor->activities().size(), numSteps);
    double activitiesNs = 0.0;
    for (const DeviceActivity& activity : executor->activities()) {
      EXPECT_NE(activity.step, DeviceActivity::kNoStep) << activity.name;
      activitiesNs += activity.durationNs;
    }
    EXPECT_LE(stepsNs, activitiesNs * (1.0 + 1e-6));  // concurrent activities count once
    EXPECT_GT(stepsNs, 0.0);
    EXPECT_GT(executor->observedNs(), 0.0);
  }
}

/// Rows of 48 values, which are 24 bytes: the recipe supports them.
TEST_F(CudaKernels, BringNVFP4BackWhoseRowsCublasLtDoesNotTake) {
  if (const Verdict runs = runsRecipe("NVFP4BlockScaling"); !runs) GTEST_SKIP() << runs.reason();
  for (const Link& linearOp : {linear(48, "fc"), with(link("GroupedLinear", "fc"), "out_features", std::int64_t{48})}) {
    const Graph graph = under("NVFP4BlockScaling", chain(DType::BF16, {144, 48}, {linearOp}));
    ASSERT_EQ(refusal(graph, unfused(graph)), "");
    EXPECT_NE(std::ranges::count_if(waysOf(graph),
                                    [](const std::string& way) { return way.starts_with("quantized values are"); }),
              0);
    expectCodesLikeReference(graph, unfused(graph), 4 * chainTolerance(DType::BF16), linearOp.operation);
  }
}

TEST_F(CudaKernels, RefuseAnUnknownNameWithTheNearest) {
  const Graph graph = chain(DType::F32, {2, 4}, {link("GELU")});
  const NodeId members[] = {0};
  const Verdict verdict = backendUnderTest()->supports({.graph = graph, .kernel = "elementwize", .members = members});
  EXPECT_FALSE(verdict);
  EXPECT_NE(verdict.reason().find("\"elementwise\""), std::string::npos) << verdict.reason();
}

/// The input's alone, and the weight's added to the buffer's content.
TEST_F(CudaKernels, MakeSwiGluAgainForTheGradientsThatAreWanted) {
  const FusionRule& rule = *builtinRules().find("ForwardBackwardSwiGLULinear");
  const Link frozen = with(linear(24), "weight_requires_grad", false);
  const Link accumulating = with(linear(24), "accumulate_into_main_grad", true);
  for (const DType dtype : kFloatTypes)
    for (const Link& last : {frozen, accumulating}) {
      const Graph graph = chain(dtype, {70, 32}, {link("SwiGLU"), last});
      const FusionReport report = fuseWith(rule, graph);
      ASSERT_TRUE(kernelsOf(graph, report).contains("swiglu_linear")) << toTree(graph, report);
      expectLikeReference(graph, report, chainTolerance(dtype), std::string(dtypeName(dtype)));
    }
}

std::string refusalOfBiasGradient(const Graph& graph) {
  const NodeId members[] = {0, 1};
  const Verdict verdict = backendUnderTest()->supports(
      {.graph = graph, .kernel = "linear_backward_bias", .phase = Phase::Backward, .members = members});
  return verdict ? "" : verdict.reason();
}

TEST_F(CudaKernels, RefuseBiasGradientsThatNoProductGives) {
  const Link bias = link("Bias");
  EXPECT_EQ(refusalOfBiasGradient(chain(DType::BF16, {4, 16}, {linear(8), bias})), "");
  const std::string untrained =
      refusalOfBiasGradient(chain(DType::BF16, {4, 16}, {with(linear(8), "weight_requires_grad", false), bias}));
  EXPECT_NE(untrained.find("trains no weight"), std::string::npos) << untrained;
  const Link accumulating = with(linear(8, "fc"), "accumulate_into_main_grad", true);
  const std::string other = refusalOfBiasGradient(chain(DType::BF16, {4, 16}, {accumulating, bias}));
  EXPECT_NE(other.find("\"fc\" has f32"), std::string::npos) << other;
  EXPECT_EQ(refusalOfBiasGradient(chain(DType::F32, {4, 16}, {accumulating, bias})), "");
}

/// Halves of gates that are no packets, too.
TEST_F(CudaKernels, KeepInputsInE4m3LikeTheReference) {
  constexpr const char* kAttribute = "cache_quantized_input";
  int numActivations = 0;
  for (const FusibleOperation* const op : basicOperations()) {
    if (!op->attribute(kAttribute)) continue;
    ++numActivations;
    for (const DType dtype : kFloatTypes)
      for (const Shape& shape : {Shape{1, 2}, {7, 62}, {70, 272}, {0, 16}}) {
        const Graph graph = chain(dtype, shape, {with(link(op->name, "act"), kAttribute, true)});
        expectLikeReference(graph, unfused(graph), toleranceOf(dtype).relative, op->name);
      }
  }
  EXPECT_GT(numActivations, 10);
}

std::string refusalOfEpilogue(const Graph& graph) {
  std::vector<NodeId> members(graph.nodes().size());
  std::iota(members.begin(), members.end(), 0);
  const Verdict verdict =
      backendUnderTest()->supports({.graph = graph, .kernel = "linear_epilogue", .members = members});
  return verdict ? "" : verdict.reason();
}

TEST_F(CudaKernels, NameTheActivationThatAProductCannotDo) {
  EXPECT_EQ(refusalOfEpilogue(chain(DType::BF16, {4, 16}, {linear(8), link("GELU", "act")})), "");
  const std::string other = refusalOfEpilogue(chain(DType::BF16, {4, 16}, {linear(8), link("SiLU", "act")}));
  EXPECT_NE(other.find("\"act\""), std::string::npos) << other;
  const std::string notLast =
      refusalOfEpilogue(chain(DType::BF16, {4, 16}, {linear(8), link("GELU", "act"), link("Bias")}));
  EXPECT_NE(notLast.find("\"act\""), std::string::npos) << notLast;
}

/// A linear layer, its bias and its activation as one step; if the GEMM does not support them, in several launches.
TEST_F(CudaKernels, ActivateProductsLikeTheReference) {
  const auto backend = backendUnderTest();
  for (const char* const activation : {"GELU", "ReLU"})
    for (const ExecutionMode pass : {ExecutionMode::Inference, ExecutionMode::Training})
      for (const std::int64_t width : {1, 7, 8, 17, 264})
        for (const DType dtype : kFloatTypes) {
          const std::vector<Link> links = {linear(width, "fc"), link("Bias"), link(activation, "act")};
          const Graph graph = chain(dtype, {33, 40}, links, {.pass = pass});
          if (!refusalOfEpilogue(graph).empty()) continue;
          const FusionReport report = std::move(
              *fuse(graph, {.switches = everythingAsked(builtinRules()), .capabilities = capabilitiesOf(backend)}));
          ASSERT_EQ(report.forward.size(), 1u) << toString(graph);
          expectLikeReference(graph, report, toleranceOfActivations(chainTolerance(dtype)), activation);
        }
}

/// In three steps with either dtype: no separate pass for GELU's gradient, nor for a bias gradient. (TransformerEngine
/// fuses a bias alone only with weights of 16 bits.)
TEST_F(CudaKernels, TakeBiasesAndActivationsOfAnMlpIntoItsProducts) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const Graph graph = chain(dtype, {33, 16},
                              {link("LayerNorm", "norm"), linear(64, "fc1"), link("Bias", "b1"), link("GELU", "act"),
                               linear(16, "fc2"), link("Bias", "b2")});
    const FusionReport report = std::move(*fuse(graph, {.capabilities = capabilitiesOf(backendUnderTest())}));
    ASSERT_EQ(report.forward.size(), 3u) << toString(graph);
    ASSERT_EQ(report.backward.size(), 3u) << toString(graph);
    EXPECT_TRUE(kernelsOf(graph, report).contains("linear_backward_bias"));
    EXPECT_TRUE(kernelsOf(graph, report).contains("linear_backward_activation"));
    expectLikeReference(graph, report, 4 * chainTolerance(dtype), "an MLP");
  }
}

std::string refusalOfGeluGrad(const Graph& graph) {
  std::vector<NodeId> members(graph.nodes().size());
  std::iota(members.begin(), members.end(), 0);
  const Verdict verdict = backendUnderTest()->supports(
      {.graph = graph, .kernel = "linear_backward_activation", .phase = Phase::Backward, .members = members});
  return verdict ? "" : verdict.reason();
}

/// Inputs of GEMMs of every width, and GEMMs with few terms to sum.
TEST_F(CudaKernels, MakeTheGradientOfGeluInProductsLikeTheReference) {
  for (const std::int64_t width : {8, 40, 264})
    for (const std::int64_t features : {1, 2, 17, 64})
      for (const DType dtype : kFloatTypes)
        for (const bool hasBias : {false, true}) {
          std::vector<Link> links = {link("GELU", "act"), linear(features, "fc")};
          if (hasBias) links.push_back(link("Bias"));
          const Graph graph = chain(dtype, {33, width}, links);
          ASSERT_EQ(refusalOfGeluGrad(graph), "");
          const FusionReport report = std::move(*fuse(graph, {.capabilities = capabilitiesOf(backendUnderTest())}));
          ASSERT_EQ(report.backward.size(), 1u) << toString(graph);
          EXPECT_EQ(report.backward.front().kernelName(graph), "linear_backward_activation");
          expectLikeReference(graph, report, toleranceOfActivations(chainTolerance(dtype)), "GELU's gradient");
        }
}

/// With main_grad the weight's gradient is float32; the library does not sum a bias gradient of another dtype with it.
TEST_F(CudaKernels, MakeTheGradientOfGeluWhateverElseIsTrained) {
  const Link gelu = link("GELU", "act");
  const Link bias = link("Bias", "b");
  const std::vector<std::vector<Link>> variants = {
      {gelu, with(linear(24, "fc"), "accumulate_into_main_grad", true), bias},
      {gelu, with(linear(24, "fc"), "weight_requires_grad", false)},
      {gelu, linear(24, "fc"), with(bias, "bias_requires_grad", false)}};
  for (const std::vector<Link>& links : variants)
    for (const DType dtype : kFloatTypes) {
      const Graph graph = chain(dtype, {33, 16}, links);
      const FusionReport report = std::move(*fuse(graph, {.capabilities = capabilitiesOf(backendUnderTest())}));
      EXPECT_TRUE(kernelsOf(graph, report).contains("linear_backward_activation")) << toString(graph);
      expectLikeReference(graph, report, toleranceOfActivations(chainTolerance(dtype)), "GELU's gradient");
    }
}

TEST_F(CudaKernels, RefuseGradientsOfActivationsThatNoProductMakes) {
  const std::string bits = refusalOfGeluGrad(chain(DType::BF16, {4, 16}, {link("ReLU", "act"), linear(8)}));
  EXPECT_NE(bits.find("For ReLU \"act\" cuBLASLt's gradient reads one bit"), std::string::npos) << bits;
  const std::string narrow = refusalOfGeluGrad(chain(DType::BF16, {4, 12}, {link("GELU", "act"), linear(8)}));
  EXPECT_NE(narrow.find("not of 12"), std::string::npos) << narrow;
  const Link frozen = with(linear(8, "fc"), "weight_requires_grad", false);
  const std::string untrained =
      refusalOfGeluGrad(chain(DType::BF16, {4, 16}, {link("GELU"), frozen, link("Bias", "b")}));
  EXPECT_NE(untrained.find("\"fc\" trains no weight"), std::string::npos) << untrained;
  EXPECT_EQ(refusalOfGeluGrad(chain(DType::BF16, {4, 16}, {link("GELU"), frozen})), "");
  const Link frozenBias = with(link("Bias", "b"), "bias_requires_grad", false);
  EXPECT_EQ(refusalOfGeluGrad(chain(DType::BF16, {4, 16}, {link("GELU"), frozen, frozenBias})), "");
}

/// If the scales are known beforehand, FP8 values of the result come from the kernel that computes it.
TEST_F(CudaKernels, LeaveActivationsToTheKernelThatQuantizesThem) {
  const NodeId members[] = {0, 1};
  for (const char* const recipe : {"Float8CurrentScaling", "DelayedScaling", "MXFP8BlockScaling"}) {
    const Graph graph = chain(DType::BF16, {128, 128}, {linear(128, "fc"), link("GELU", "act"), linear(128, "out")},
                              {.recipe = recipe});
    const Verdict verdict =
        backendUnderTest()->supports({.graph = graph, .kernel = "linear_epilogue", .members = members});
    EXPECT_EQ(static_cast<bool>(verdict), std::string(recipe) == "Float8CurrentScaling") << recipe;
    if (!verdict) {
      EXPECT_NE(verdict.reason().find("\"out\" consumes the quantized result of \"act\""), std::string::npos);
    }
  }
}

/// The inputs of backward must be among the outputs of cuBLASLt.
TEST_F(CudaKernels, RefuseActivationsWhoseInputTheProductDoesNotWrite) {
  const std::string narrow = refusalOfEpilogue(chain(DType::BF16, {4, 16}, {linear(12), link("GELU", "act")}));
  EXPECT_NE(narrow.find("not of 12"), std::string::npos) << narrow;
  const std::vector<Link> rectified = {linear(12), link("Bias"), link("ReLU", "act")};
  const std::string bits = refusalOfEpilogue(chain(DType::BF16, {4, 16}, rectified));
  EXPECT_NE(bits.find("only one bit"), std::string::npos) << bits;
}

}  // namespace
}  // namespace fuseline
