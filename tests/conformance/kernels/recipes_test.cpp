// Pipelines under quantization recipes: the operands of their GEMMs, on the reference and on the CPU.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/recipes.h"
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/quant/apply_recipe.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "core/support/json_fields.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/gemm/coded_gemm.h"
#include "tests/support/compare.h"
#include "tests/support/handed_codes.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

Graph oneLinear(DType dtype, const ChainOptions& options = {}) {
  return chain(dtype, {128, 256}, {linear(128, "fc")}, options);
}

/// A matrix in double.
struct Doubles {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> values;
  double at(std::int64_t row, std::int64_t col) const { return values[static_cast<std::size_t>(row * cols + col)]; }
};

Doubles operand(const Recipe& recipe, const Tensor& x, OperandRole role, const std::string& name) {
  return {x.spec.rows(), x.spec.cols(), operandValues(recipe, x, role, name)};
}

enum class Stored { Plain, Transposed };

double at(const Doubles& matrix, Stored form, std::int64_t row, std::int64_t col) {
  return form == Stored::Plain ? matrix.at(row, col) : matrix.at(col, row);
}

std::vector<double> product(const Doubles& a, Stored formOfA, const Doubles& b, Stored formOfB) {
  const std::int64_t rows = formOfA == Stored::Plain ? a.rows : a.cols;
  const std::int64_t depth = formOfA == Stored::Plain ? a.cols : a.rows;
  const std::int64_t cols = formOfB == Stored::Plain ? b.cols : b.rows;
  std::vector<double> sums;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < depth; ++k) sum += at(a, formOfA, row, k) * at(b, formOfB, k, col);
      sums.push_back(sum);
    }
  return sums;
}

/// y = x W^T, dx = dy W, dW = dy^T x of x, W and dy as quantized by the recipe.
RunResults expectedOf(const Recipe& recipe, const NamedTensors& bindings) {
  const auto read = [&](const char* tensor, TensorType type, GemmRole gemm, const char* name) {
    return operand(recipe, find(bindings, tensor), {type, gemm}, name);
  };
  const auto x = [&](GemmRole gemm) { return read("x", TensorType::Input, gemm, "fc.input"); };
  const auto weight = [&](GemmRole gemm) { return read("fc.weight", TensorType::Weight, gemm, "fc.weight"); };
  const auto dy = [&](GemmRole gemm) { return read("grad.y", TensorType::GradOutput, gemm, "fc.grad_output"); };
  return {{"y", product(x(GemmRole::Fprop), Stored::Plain, weight(GemmRole::Fprop), Stored::Transposed)},
          {"grad.x", product(dy(GemmRole::Dgrad), Stored::Plain, weight(GemmRole::Dgrad), Stored::Plain)},
          {"grad.fc.weight", product(dy(GemmRole::Wgrad), Stored::Transposed, x(GemmRole::Wgrad), Stored::Plain)}};
}

class EveryRecipe : public ::testing::TestWithParam<const RecipeDefinition*> {};

TEST_P(EveryRecipe, MultipliesWhatItsQuantizersMake) {
  const Recipe tested = recipe(GetParam()->name.c_str());
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    const Graph graph = under(tested, oneLinear(dtype));
    const RunResults expected = expectedOf(tested, *makeBindings(graph, 1));
    for (const auto& backend : {makeReferenceBackend(), cpu::makeCpuBackend()})
      EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), backend), expected, toleranceOf(dtype).relative), "")
          << dtypeName(dtype) << " on " << backend->device().id;
  }
}

TEST_P(EveryRecipe, WorksWithoutNativeBf16Products) {
  const Graph graph = under(recipe(GetParam()->name.c_str()), oneLinear(DType::BF16));
  const auto slow = cpu::makeCpuBackend({.bf16Gemm = cpu::CpuOptions::Bf16Gemm::ThroughF32});
  EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), slow),
                            runPlan(graph, unfused(graph), makeReferenceBackend()), toleranceOf(DType::BF16).relative),
            "");
}

TEST_P(EveryRecipe, GivesInferenceTheSameOutputs) {
  const Recipe tested = recipe(GetParam()->name.c_str());
  const Graph training = under(tested, oneLinear(DType::BF16));
  const Graph inference = under(tested, oneLinear(DType::BF16, {.pass = ExecutionMode::Inference}));
  for (const auto& backend : {makeReferenceBackend(), cpu::makeCpuBackend()})
    EXPECT_EQ(runPlan(inference, unfused(inference), backend).at("y"),
              runPlan(training, unfused(training), backend).at("y"))
        << backend->device().id;
}

/// The chains of chapter te that have a linear, and our epilogue; all operands fit every scaling.
std::vector<std::vector<Link>> fusedChains() {
  return {{linear(128, "fc"), link("Bias")},
          {linear(128, "fc"), link("Bias"), inPlace(link("AddExtraInput"))},
          {linear(128, "fc"), with(link("ConstantScale"), "scale", 0.5), inPlace(link("AddExtraInput"))},
          {inPlace(link("MakeExtraOutput", "save")), linear(128, "fc")},
          {linear(128, "fc"), link("Bias"), link("GELU")},
          {linear(256, "fc"), link("SwiGLU")}};
}

TEST_P(EveryRecipe, IsTheSameFusedAndUnfused) {
  const Recipe tested = recipe(GetParam()->name.c_str());
  const auto backend = cpu::makeCpuBackend();
  for (const std::vector<Link>& links : fusedChains()) {
    const Graph graph = under(tested, chain(DType::BF16, {128, 256}, links));
    const auto report = fuse(graph, {.capabilities = capabilitiesOf(backend)});
    ASSERT_TRUE(report.hasValue());
    const RunResults fused = runPlan(graph, *report, backend);
    const RunResults apart = runPlan(graph, unfused(graph), backend);
    EXPECT_EQ(quantizesUnrounded(graph, *report) ? differenceOfNextCodes(fused, apart)
                                                 : firstDifference(fused, apart, 4 * toleranceOf(DType::BF16).relative),
              "")
        << toText(graph, report->forward);
  }
}

INSTANTIATE_TEST_SUITE_P(Builtin, EveryRecipe, ::testing::ValuesIn([] {
                           std::vector<const RecipeDefinition*> all;
                           for (const RecipeDefinition& definition : builtinRecipes()) all.push_back(&definition);
                           return all;
                         }()),
                         [](const auto& test) { return test.param->name; });

TEST(Recipes, LeaveWhatAnOverrideNamesInHighPrecision) {
  const RoleOverride wgrad{.gemm = GemmRole::Wgrad, .op = "fc"};
  const Graph graph = under(recipe("MXFP8BlockScaling", {}, {wgrad}), oneLinear(DType::BF16));
  const RunResults plain = runPlan(oneLinear(DType::BF16), unfused(oneLinear(DType::BF16)), makeReferenceBackend());
  const RunResults results = runPlan(graph, unfused(graph), makeReferenceBackend());
  EXPECT_EQ(results.at("grad.fc.weight"), plain.at("grad.fc.weight"));
  EXPECT_NE(results.at("grad.x"), plain.at("grad.x"));
}

Recipe custom(const std::string& overrides) {
  return *recipeFromJson(*parseJson(R"({"name": "CustomRecipe", "overrides": [)" + overrides + "]}"));
}

/// Scalings that differ between forward and backward, between tensors, and between the two directions of a tensor.
TEST(Recipes, MultiplyWhatAMixOfQuantizersMakes) {
  for (const Recipe& tested :
       {custom(R"({"quantizer": "Float8CurrentScaling"}, {"tensor": "weight", "quantizer": "DelayedScaling"})"),
        custom(R"({"gemm": "fprop", "quantizer": "Float8CurrentScaling"},
                  {"gemm": "dgrad", "quantizer": "MXFP8BlockScaling"},
                  {"gemm": "wgrad", "quantizer": {"name": "NVFP4BlockScaling", "disable_stochastic_rounding": true}})"),
        custom(R"({"gemm": "fprop", "format": "high_precision"}, {"gemm": "dgrad", "quantizer": "Float8BlockScaling"},
                  {"gemm": "wgrad", "quantizer": "Float8CurrentScaling"})")})
    for (const DType dtype : {DType::F32, DType::BF16}) {
      const Graph graph = under(tested, oneLinear(dtype));
      const RunResults expected = expectedOf(tested, *makeBindings(graph, 1));
      for (const auto& backend : {makeReferenceBackend(), cpu::makeCpuBackend()})
        EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), backend), expected, toleranceOf(dtype).relative), "")
            << toJson(tested).dump() << " in " << dtypeName(dtype) << " on " << backend->device().id;
    }
}

/// TransformerEngine's columnwise_source "rowwise_dequantized": quantized once, dequantized, quantized again.
TEST(Recipes, QuantizeWhatTheRowwiseCopyStandsForIfAsked) {
  Attributes fields;
  fields.set("qfactory", std::string("mxfp8_fwd_nvfp4_bwd_factory"));
  const Recipe tested = recipe("CustomRecipe", fields);
  const Graph graph = under(tested, oneLinear(DType::BF16));
  const NamedTensors bindings = *makeBindings(graph, 1);
  const Tensor& weight = find(bindings, "fc.weight");
  const Result<QuantizedTensor> once = quantize(weight, {.scaling = Scaling::Mx1x32}, Copies::Rowwise);
  const Tensor again = *dequantize(*once, Usage::Rowwise);
  const Result<QuantizedTensor> twice =
      quantize(again, {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16}, Copies::Columnwise);
  const Tensor read = *dequantize(*twice, Usage::Columnwise);
  const Doubles dy =
      operand(tested, find(bindings, "grad.y"), {TensorType::GradOutput, GemmRole::Dgrad}, "fc.grad_output");
  const RunResults expected = {
      {"grad.x", product(dy, Stored::Plain, {read.spec.rows(), read.spec.cols(), read.toDoubles()}, Stored::Plain)}};
  for (const auto& backend : {makeReferenceBackend(), cpu::makeCpuBackend()})
    EXPECT_EQ(firstDifference({{"grad.x", runPlan(graph, unfused(graph), backend).at("grad.x")}}, expected,
                              toleranceOf(DType::BF16).relative),
              "")
        << backend->device().id;
}

TEST(Recipes, RefuseOneOpWhoseOperandsDoNotFitEachOther) {
  std::vector<Diagnostic> diagnostics;
  applyRecipe(oneLinear(DType::BF16),
              custom(R"({"quantizer": "MXFP8BlockScaling"}, {"op": "fc", "tensor": "weight", "quantizer": "None"})"),
              diagnostics);
  ASSERT_EQ(diagnostics.size(), 1U);
  EXPECT_EQ(diagnostics.front().severity, Severity::Error);
  EXPECT_EQ(diagnostics.front().message,
            "fc: fprop would multiply the input in mx_1x32 by the weight in high precision. TransformerEngine's GEMM "
            "raises, because either both operands or none must be quantized. Quantize both, or neither.");
}

TEST(Recipes, ReadDequantizedOperandsInBackwardIfAsked) {
  Attributes fields;
  fields.set("backward_override", std::string("dequantized"));
  const Recipe tested = recipe("Float8CurrentScaling", fields);
  const Graph graph = under(tested, oneLinear(DType::BF16));
  const NamedTensors bindings = *makeBindings(graph, 1);
  const Doubles weight = operand(tested, find(bindings, "fc.weight"), {TensorType::Weight, GemmRole::Fprop}, "");
  const Tensor& dy = find(bindings, "grad.y");
  const RunResults expected = {
      {"grad.x", product({dy.spec.rows(), dy.spec.cols(), dy.toDoubles()}, Stored::Plain, weight, Stored::Plain)}};
  for (const auto& backend : {makeReferenceBackend(), cpu::makeCpuBackend()}) {
    RunResults results = runPlan(graph, unfused(graph), backend);
    EXPECT_EQ(firstDifference({{"grad.x", results.at("grad.x")}}, expected, toleranceOf(DType::BF16).relative), "");
  }
}

TEST(Recipes, QuantizeAWeightOnceInInference) {
  const Graph graph = under(recipe("Float8CurrentScaling"), oneLinear(DType::BF16, {.pass = ExecutionMode::Inference}));
  const Plan plan = makePlan(graph, unfused(graph));
  const auto step = std::ranges::find(plan.steps, "fc.quantize_weight", &Step::name);
  ASSERT_NE(step, plan.steps.end());
  EXPECT_TRUE(step->runsOnce);
  EXPECT_EQ(plan.numLaunches(), 2);  // the input's quantization and the GEMM
}

/// Only its quantized tensors are there: two of one byte an element in training, where the weight had two bytes.
TEST(Recipes, StoreTheWeightQuantizedIfAsked) {
  for (const RecipeDefinition* definition : quantizingRecipes())
    for (const ExecutionMode pass : {ExecutionMode::Training, ExecutionMode::Inference}) {
      Attributes fields;
      fields.set(kQuantizedModelInit, true);
      const Graph stored = under(recipe(definition->name, fields), oneLinear(DType::BF16, {.pass = pass}));
      const Graph plain = under(recipe(definition->name), oneLinear(DType::BF16, {.pass = pass}));
      const Plan plan = makePlan(stored, unfused(stored));
      const PlanTensor& weight = plan.tensors[static_cast<std::size_t>(plan.findTensor("fc.weight"))];
      EXPECT_TRUE(weight.isInitialOnly);
      EXPECT_EQ(plan.storages[static_cast<std::size_t>(weight.storage)].bytes, 0);
      EXPECT_LE(plan.peakBytes(), makePlan(plain, unfused(plain)).peakBytes());
      for (const auto& backend : {makeReferenceBackend(), cpu::makeCpuBackend()})
        EXPECT_EQ(runPlan(stored, unfused(stored), backend), runPlan(plain, unfused(plain), backend))
            << definition->name;
    }
}

TEST(Recipes, ReadTheStoredWeightInABackwardOfHighPrecision) {
  Attributes fields;
  fields.set(kQuantizedModelInit, true);
  fields.set("backward_override", std::string("high_precision"));
  const Recipe tested = recipe("Float8CurrentScaling", fields);
  const Graph graph = under(tested, oneLinear(DType::BF16));
  const NamedTensors bindings = *makeBindings(graph, 1);
  const Doubles weight = operand(tested, find(bindings, "fc.weight"), {TensorType::Weight, GemmRole::Fprop}, "");
  const Tensor& dy = find(bindings, "grad.y");
  const RunResults expected = {
      {"grad.x", product({dy.spec.rows(), dy.spec.cols(), dy.toDoubles()}, Stored::Plain, weight, Stored::Plain)}};
  const RunResults results = runPlan(graph, unfused(graph), cpu::makeCpuBackend());
  EXPECT_EQ(firstDifference({{"grad.x", results.at("grad.x")}}, expected, toleranceOf(DType::BF16).relative), "");
}

TEST(Recipes, SayThatAStoredWeightCannotBeRead) {
  Attributes fields;
  fields.set(kQuantizedModelInit, true);
  const Graph graph = under(recipe("MXFP8BlockScaling", fields), oneLinear(DType::BF16));
  const Plan plan = makePlan(graph, unfused(graph));
  const auto executor = *Executor::create(cpu::makeCpuBackend(), graph, plan, *makeBindings(graph, 1));
  EXPECT_EQ(executor->read("fc.weight").error().message,
            "fc.weight: quantized_model_init stores it quantized only. Read fc.weight@rowwise.");
  EXPECT_TRUE(executor->read("fc.weight@rowwise"));
}

/// One float32 scale a row of activations, without a transform.
TEST(Recipes, ScaleRowsOfActivationsIfAsked) {
  Attributes fields;
  fields.set("row_scaled_activation", true);
  fields.set("disable_rht", true);
  const Graph graph = under(recipe("NVFP4BlockScaling", fields), oneLinear(DType::BF16));
  EXPECT_EQ(graph.nodes().front().quantizers.input.columnwise->scaling, Scaling::NvRow1x16);
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), cpu::makeCpuBackend()), expected,
                            toleranceOf(DType::BF16).relative),
            "");
}

/// Few rows and a constant weight: a CPU that supports it multiplies the encoded weight, decoded tile by tile.
TEST(Recipes, MultiplyFewRowsLikeTheReference) {
  const auto backend = cpu::makeCpuBackend();
  for (const char* name : {"DelayedScaling", "Float8CurrentScaling"})
    for (const std::int64_t rows : {16, 48, 64})
      for (const std::vector<Link>& links :
           {std::vector{linear(144, "fc")}, std::vector{linear(144, "fc"), link("Bias"), link("GELU")},
            std::vector{link("RMSNorm"), linear(160, "fc"), link("SwiGLU")}}) {
        const Graph graph =
            under(recipe(name), chain(DType::BF16, {rows, 208}, links, {.pass = ExecutionMode::Inference}));
        for (const FusionReport& report : {unfused(graph), *fuse(graph, {.capabilities = capabilitiesOf(backend)})}) {
          const RunResults expected = runPlan(graph, report, makeReferenceBackend());
          EXPECT_EQ(firstDifference(runPlan(graph, report, backend), expected, toleranceOf(DType::BF16).relative), "")
              << name << " with " << rows << " rows";
        }
      }
}

/// Decoded values take two bytes each in addition to the encoded ones.
TEST(Recipes, DecodeNoWeightThatIsMultipliedAsCodes) {
  if (!cpu::canMultiplyCodes()) GTEST_SKIP() << "this CPU has no AMX in bf16, or this process may not use it";
  const auto workspaceFor = [](std::int64_t rows) {
    const Graph graph = under(recipe("Float8CurrentScaling"),
                              chain(DType::BF16, {rows, 512}, {linear(512, "fc")}, {.pass = ExecutionMode::Inference}));
    const Plan plan = makePlan(graph, unfused(graph));
    const auto step = std::ranges::find(plan.steps, "BasicLinear", &Step::kernel);
    const auto kernel = cpu::makeCpuBackend()->compile(graph, plan, *step, {.parametersAreConstant = true});
    return (*kernel)->workspaceBytes();
  };
  constexpr std::size_t kWeightBytes = std::size_t{512} * 512 * 2;
  EXPECT_LT(workspaceFor(64), kWeightBytes);
  EXPECT_GE(workspaceFor(80), kWeightBytes);
}

TEST(Recipes, KeepOneByteAnElementForBackward) {
  const auto saved = [](const Graph& graph) { return makePlan(graph, unfused(graph)).savedForBackwardBytes; };
  const std::vector<Link> links = {link("GELU"), linear(128, "fc")};
  const std::int64_t plain = saved(chain(DType::BF16, {128, 256}, links));
  const std::int64_t quantized = saved(under(recipe("MXFP8BlockScaling"), chain(DType::BF16, {128, 256}, links)));
  EXPECT_EQ(plain, 128 * 256 * 2);
  // A byte for each element of x and of W, and a scale for every 32 of them.
  EXPECT_EQ(quantized, (128 * 256 + 128 * 256 / 32) * 2);
}

TEST(Recipes, SayWhichSizeDoesNotFit) {
  std::vector<Diagnostic> diagnostics;
  const Graph graph =
      applyRecipe(chain(DType::BF16, {100, 64}, {linear(48, "fc")}), recipe("MXFP8BlockScaling"), diagnostics);
  ASSERT_EQ(diagnostics.size(), 1U);
  EXPECT_EQ(diagnostics.front().message,
            "fc stays in bf16: its input is 100 x 64, but MXFP8BlockScaling needs multiples of 32. Pad it to [128, 64] "
            "to quantize it.");
  EXPECT_FALSE(graph.nodes().front().quantizers.any());
}

std::vector<std::string> misfits(const Recipe& recipe, Graph graph) {
  std::vector<Diagnostic> diagnostics;
  applyRecipe(std::move(graph), recipe, diagnostics);
  std::vector<std::string> messages;
  for (const Diagnostic& diagnostic : diagnostics) messages.push_back(diagnostic.message);
  return messages;
}

/// te.Linear runs 8 rows in FP8 where no weight gradient contracts them.
TEST(Recipes, QuantizeRowsBy8InInference) {
  using Messages = std::vector<std::string>;
  const auto eightRows = [](const ChainOptions& options) {
    return chain(DType::BF16, {8, 64}, {linear(24, "fc")}, options);
  };
  EXPECT_EQ(misfits(recipe("Float8CurrentScaling"), eightRows({.pass = ExecutionMode::Inference})), Messages{});
  EXPECT_EQ(misfits(recipe("Float8CurrentScaling"), eightRows({})),
            Messages{"fc stays in bf16: its input is 8 x 64, but Float8CurrentScaling needs multiples of 16. Pad it to "
                     "[16, 64] to quantize it."});
  EXPECT_EQ(
      misfits(recipe("DelayedScaling"),
              chain(DType::BF16, {50, 64}, {linear(24, "fc")}, {.pass = ExecutionMode::Inference})),
      Messages{"fc stays in bf16: its input is 50 x 64, but DelayedScaling needs multiples of 8 x 16. Pad it to [56, "
               "64] to quantize it."});
}

/// A frozen weight has no weight gradient either.
TEST(Recipes, QuantizeRowsBy8WhereTheWeightIsFrozen) {
  const Link frozen = with(linear(32, "fc"), "weight_requires_grad", false);
  EXPECT_TRUE(misfits(recipe("Float8CurrentScaling"), chain(DType::BF16, {8, 64}, {frozen})).empty());
}

/// The sizes of TransformerEngine's test of blocks, and smaller ones: blocks end early in every direction.
TEST(Recipes, MultiplyBlocksOf128ThatEndEarly) {
  const auto cpu = cpu::makeCpuBackend();
  for (const Shape& shape : {Shape{320, 64}, Shape{144, 208}})
    for (const std::int64_t columns : {336, 48}) {
      const Recipe tested = recipe("Float8BlockScaling");
      const Graph graph = under(tested, chain(DType::BF16, shape, {linear(columns, "fc")}));
      ASSERT_TRUE(graph.node(0).quantizers.any());
      const RunResults expected = expectedOf(tested, *makeBindings(graph, 1));
      for (const auto& backend : {makeReferenceBackend(), cpu})
        EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), backend), expected, toleranceOf(DType::BF16).relative),
                  "")
            << toString(shape) << " on " << backend->device().id;
    }
}

/// Ops before and after a layer also write blocks that end early.
TEST(Recipes, HandOverBlocksOf128ThatEndEarly) {
  const auto backend = cpu::makeCpuBackend();
  const std::vector<Link> links = {link("RMSNorm"), linear(96, "fc1"), link("GELU"), linear(208, "fc2")};
  const Graph graph = under(recipe("Float8BlockScaling"), chain(DType::BF16, {144, 208}, links));
  const auto report = fuse(graph, {.capabilities = capabilitiesOf(backend)});
  ASSERT_TRUE(report.hasValue());
  EXPECT_FALSE(report->fusedOperands.empty());
  const RunResults fused = runPlan(graph, *report, backend);
  const RunResults apart = runPlan(graph, unfused(graph), backend);
  EXPECT_EQ(quantizesUnrounded(graph, *report) ? differenceOfNextCodes(fused, apart)
                                               : firstDifference(fused, apart, 4 * toleranceOf(DType::BF16).relative),
            "");
}

TEST(Recipes, ForbidFusionsAroundAQuantizedTensor) {
  const std::vector<Link> links = {link("SwiGLU", "act"), linear(128, "fc")};
  const Graph graph = under(recipe("DelayedScaling"), chain(DType::BF16, {128, 512}, links));
  const auto report = fuse(graph, {.switches = {.with = {"ForwardBackwardSwiGLULinear"}}});
  ASSERT_TRUE(report.hasValue());
  const auto attempt = std::ranges::find_if(
      report->attempts, [](const Attempt& tried) { return tried.rule->name == "ForwardBackwardSwiGLULinear"; });
  ASSERT_NE(attempt, report->attempts.end());
  EXPECT_EQ(attempt->explanation,
            "The recipe quantizes the input of fc (BasicLinear) to e4m3, so it must be materialized before the GEMM; a "
            "fused kernel would not write it to memory.");
}

float scaleAfter(Executor& executor, const std::string& name) {
  return static_cast<float>(executor.read(name)->toDoubles().front());
}

double amaxOf(const Tensor& tensor) {
  double amax = 0.0;
  for (const double value : tensor.toDoubles()) amax = std::max(amax, std::abs(value));
  return amax;
}

/// Delayed scaling: scale = (format max / amax) / 2^margin after every step, for input, weight and gradient.
TEST(Recipes, UpdateDelayedScalesAfterEveryStep) {
  Attributes fields;
  fields.set("margin", std::int64_t{2});
  fields.set("amax_history_len", std::int64_t{8});
  const Graph graph = under(recipe("DelayedScaling", fields), oneLinear(DType::BF16));
  const Plan plan = makePlan(graph, unfused(graph));
  const NamedTensors bindings = *makeBindings(graph, 1);
  for (const auto& backend : {makeReferenceBackend(), cpu::makeCpuBackend()}) {
    const auto executor = *Executor::create(backend, graph, plan, bindings);
    const std::string states = "DelayedScaling-HYBRID/fc/";
    EXPECT_EQ(scaleAfter(*executor, states + "forward/input.scale"), 1.0F);
    ASSERT_TRUE(executor->run().hasValue());
    for (const auto& [state, tensor, largest] :
         {std::tuple{"forward/input", "x", 448.0}, std::tuple{"forward/weight", "fc.weight", 448.0},
          std::tuple{"backward/grad_output", "grad.y", 57344.0}}) {
      const double expected = largest / amaxOf(find(bindings, tensor)) / 4.0;
      EXPECT_NEAR(scaleAfter(*executor, states + state + ".scale"), expected, 1e-6 * expected) << state;
      const std::vector<double> history = executor->read(states + state + ".amax_history")->toDoubles();
      EXPECT_EQ(history.size(), 8U);
      EXPECT_EQ(history.back(), amaxOf(find(bindings, tensor)));
      EXPECT_EQ(history.front(), 0.0);
    }
  }
}

/// Steps, then a state that is taken up again: the same bits as without the break.
TEST(Recipes, GoOnFromASavedState) {
  const Graph graph = under(recipe("DelayedScaling"), oneLinear(DType::BF16));
  const Plan plan = makePlan(graph, unfused(graph));
  const auto backend = cpu::makeCpuBackend();
  const NamedTensors bindings = *makeBindings(graph, 1);
  const auto first = *Executor::create(backend, graph, plan, bindings);
  ASSERT_TRUE(first->run().hasValue());
  NamedTensors state;
  for (const PlanTensor& tensor : plan.tensors)
    if (tensor.role == TensorRole::QuantizerState) state.emplace_back(tensor.name, *first->read(tensor.name));
  EXPECT_EQ(state.size(), 6U);
  const auto second = *Executor::create(backend, graph, plan, *makeBindings(graph, 1, state));
  ASSERT_TRUE(first->run().hasValue());
  ASSERT_TRUE(second->run().hasValue());
  for (const char* name : {"y", "grad.x", "grad.fc.weight", "DelayedScaling-HYBRID/fc/forward/input.amax_history"})
    EXPECT_EQ(first->read(name)->data, second->read(name)->data) << name;
}

}  // namespace
}  // namespace fuseline
