// The op Quantize under recipes: its quantized values, and their consumers.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/quant/apply_recipe.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/compare.h"
#include "tests/support/pipelines.h"
#include "tests/support/recipes.h"
#include "tests/support/run_plan.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

std::vector<std::shared_ptr<Backend>> backends() { return {makeReferenceBackend(), cpu::makeCpuBackend()}; }

const Step* stepNamed(const Plan& plan, const std::string& name, Phase phase = Phase::Forward) {
  const auto found =
      std::ranges::find_if(plan.steps, [&](const Step& step) { return step.name == name && step.phase == phase; });
  return found == plan.steps.end() ? nullptr : &*found;
}

/// The dequantized values, rounded once to the dtype of x.
std::vector<double> passedOn(const Recipe& recipe, const Tensor& x, OperandRole role, const std::string& name) {
  return Tensor::fromDoubles(x.spec, operandValues(recipe, x, role, name)).toDoubles();
}

class QuantizeOp : public ::testing::TestWithParam<const RecipeDefinition*> {
 protected:
  Recipe tested() const { return recipe(GetParam()->name); }
};

TEST_P(QuantizeOp, GivesTheNumbersOfItsCodesBitForBit) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const auto& [forward, backward] : {std::pair{true, true}, {true, false}, {false, true}, {false, false}}) {
      const Graph graph = under(tested(), chain(dtype, {256, 128}, {quantizeLink(forward, backward, "q")}));
      const NamedTensors bindings = *makeBindings(graph, 1);
      const Tensor& x = find(bindings, "x");
      const Tensor& dy = find(bindings, "grad.y");
      for (const auto& backend : backends()) {
        const RunResults results = runPlan(graph, unfused(graph), backend);
        const std::string place = std::string(dtypeName(dtype)) + " on " + backend->device().id;
        EXPECT_EQ(results.at("y"),
                  forward ? passedOn(tested(), x, {TensorType::Input, GemmRole::Fprop}, "q.input") : x.toDoubles())
            << place;
        EXPECT_EQ(results.at("grad.x"),
                  backward ? passedOn(tested(), dy, {TensorType::GradOutput, GemmRole::Dgrad}, "q.grad_output")
                           : dy.toDoubles())
            << place;
      }
    }
}

TEST_P(QuantizeOp, LosesSomethingOfMostNumbers) {
  const Graph graph = under(tested(), chain(DType::F32, {128, 128}, {quantizeLink(true, false, "q")}));
  EXPECT_NE(runPlan(graph, unfused(graph), cpu::makeCpuBackend()).at("y"),
            find(*makeBindings(graph, 1), "x").toDoubles());
}

TEST_P(QuantizeOp, HandsItsCodesToALinear) {
  const Graph handed =
      under(tested(), chain(DType::BF16, {128, 256}, {quantizeLink(true, false, "q"), linear(128, "fc")}));
  const Graph plain = under(tested(), chain(DType::BF16, {128, 256}, {linear(128, "fc")}));
  const Plan plan = makePlan(handed, unfused(handed));
  EXPECT_TRUE(stepNamed(plan, "q.quantize_input"));
  EXPECT_FALSE(stepNamed(plan, "q"));
  EXPECT_FALSE(stepNamed(plan, "fc.quantize_input"));
  EXPECT_EQ(plan.numLaunches(), makePlan(plain, unfused(plain)).numLaunches());
  for (const auto& backend : backends())
    EXPECT_EQ(runPlan(handed, unfused(handed), backend), runPlan(plain, unfused(plain), backend));
}

TEST_P(QuantizeOp, HandsTheCodesOfAGradientToALinear) {
  const std::vector<Link> links = {linear(128, "fc"), quantizeLink(false, true, "q")};
  const Graph handed = under(tested(), chain(DType::BF16, {128, 256}, links));
  const Graph plain = under(tested(), chain(DType::BF16, {128, 256}, {linear(128, "fc")}));
  const Plan plan = makePlan(handed, unfused(handed));
  EXPECT_TRUE(stepNamed(plan, "q.quantize_grad_output", Phase::Backward));
  EXPECT_FALSE(stepNamed(plan, "q", Phase::Backward));
  EXPECT_FALSE(stepNamed(plan, "fc.quantize_grad_output", Phase::Backward));
  const bool isRandom = handed.node(1).quantizers.gradOutput.rowwise->roundsStochastically;
  for (const auto& backend : backends()) {
    const RunResults results = runPlan(handed, unfused(handed), backend);
    const RunResults expected = runPlan(plain, unfused(plain), backend);
    // Random bits follow from the name of the tensor, and this one is q's.
    if (isRandom)
      EXPECT_EQ(firstDifference(results, expected, 1.0), "");
    else
      EXPECT_EQ(results, expected);
  }
}

TEST_P(QuantizeOp, IsReadByLinearsAndOthersAtOnce) {
  const std::vector<Link> links = {quantizeLink(true, false, "q"), linear(256, "fc"),
                                   link("AddExtraInput", "add", "q.y")};
  const Graph graph = under(tested(), chain(DType::BF16, {128, 256}, links));
  const Plan plan = makePlan(graph, unfused(graph));
  ASSERT_TRUE(stepNamed(plan, "q"));
  EXPECT_FALSE(stepNamed(plan, "q")->isView);
  EXPECT_FALSE(stepNamed(plan, "fc.quantize_input"));
  EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), cpu::makeCpuBackend()),
                            runPlan(graph, unfused(graph), makeReferenceBackend()), toleranceOf(DType::BF16).relative),
            "");
}

/// Two passes over memory: quantization, and dequantization.
TEST_P(QuantizeOp, CostsAPassWhereNobodyReadsCodes) {
  const Graph graph = under(tested(), chain(DType::BF16, {128, 256}, {quantizeLink(true, false, "q"), link("GELU")}));
  const Plan plan = makePlan(graph, unfused(graph));
  const Step* const quantize = stepNamed(plan, "q.quantize_input");
  const Step* const back = stepNamed(plan, "q");
  ASSERT_TRUE(quantize && back);
  EXPECT_GE(quantize->bytesRead, 128 * 256 * 2);
  EXPECT_EQ(back->bytesRead, plan.spec(*quantize->find({0, OperandKind::Output, 0})).bytes());
  EXPECT_EQ(back->kernel, "Quantize");
  EXPECT_EQ(back->bytesWritten, 128 * 256 * 2);
  EXPECT_NE(back->note.find("dequantized"), std::string::npos);
}

TEST_P(QuantizeOp, LetsBackwardActivationBiasFuse) {
  const std::vector<Link> links = {quantizeLink(false, true, "q"), link("Bias", "bias"), link("GELU", "act")};
  for (const Shape& shape : {Shape{128, 128}, {128, 1, 128}}) {
    const Graph graph = under(tested(), chain(DType::BF16, shape, links));
    const auto backend = cpu::makeCpuBackend();
    const auto report = fuse(graph, {.book = RuleBook::Te, .capabilities = capabilitiesOf(backend)});
    ASSERT_TRUE(report.hasValue());
    ASSERT_EQ(report->backward.size(), 2U);
    EXPECT_FALSE(report->backward[0].isFused());
    EXPECT_EQ(report->backward[1].rule->name, "BackwardActivationBias");
    // A number between two representable values is decided by its last bit; adjacent ones differ by at most 50 %.
    EXPECT_EQ(
        firstDifference(runPlan(graph, *report, backend), runPlan(graph, unfused(graph), makeReferenceBackend()), 0.5),
        "");
  }
}

TEST_P(QuantizeOp, QuantizesATensorOnce) {
  const Graph twice = under(tested(), chain(DType::BF16, {128, 128},
                                            {quantizeLink(true, true, "first"), quantizeLink(true, true, "second")}));
  const Plan plan = makePlan(twice, unfused(twice));
  EXPECT_TRUE(stepNamed(plan, "first.quantize_input"));
  EXPECT_FALSE(stepNamed(plan, "second.quantize_input"));
  EXPECT_TRUE(stepNamed(plan, "second")->isView);
  EXPECT_TRUE(stepNamed(plan, "second.quantize_grad_output", Phase::Backward));
  EXPECT_FALSE(stepNamed(plan, "first.quantize_grad_output", Phase::Backward));
}

INSTANTIATE_TEST_SUITE_P(Builtin, QuantizeOp, ::testing::ValuesIn(quantizingRecipes()),
                         [](const auto& test) { return test.param->name; });

TEST(QuantizeOpWithoutCodes, LeavesTheGradientAloneUnderABackwardOverride) {
  Attributes fields;
  fields.set("backward_override", std::string("high_precision"));
  const Graph graph =
      under(recipe("Float8CurrentScaling", fields), chain(DType::BF16, {32, 32}, {quantizeLink(true, true, "q")}));
  const NamedTensors bindings = *makeBindings(graph, 1);
  for (const auto& backend : backends()) {
    const RunResults results = runPlan(graph, unfused(graph), backend);
    EXPECT_EQ(results.at("grad.x"), find(bindings, "grad.y").toDoubles());
    EXPECT_NE(results.at("y"), find(bindings, "x").toDoubles());
  }
}

TEST(QuantizeOpWithoutCodes, StaysInHighPrecisionWhereBlocksDoNotFit) {
  std::vector<Diagnostic> diagnostics;
  const Graph graph = applyRecipe(chain(DType::BF16, {33, 40}, {quantizeLink(true, false, "q")}),
                                  recipe("MXFP8BlockScaling"), diagnostics);
  ASSERT_EQ(diagnostics.size(), 1U);
  EXPECT_EQ(diagnostics.front().message,
            "q stays in bf16: its input is 33 x 40, but MXFP8BlockScaling needs multiples of 32. Pad it to [64, 64] to "
            "quantize it.");
  EXPECT_TRUE(makePlan(graph, unfused(graph)).steps.front().isView);
}

/// One scale does for any shape: 448 / amax = 64 brings 7 to the largest number, and 5 to 320.
TEST(QuantizeOpOfOneScale, TakesAnyShape) {
  const Graph graph = under(recipe("Float8CurrentScaling"), chain(DType::F32, {3}, {quantizeLink(true, false, "q")}));
  const NamedTensors given = {{"x", Tensor::fromDoubles({DType::F32, {3}}, std::vector<double>{7.0, 5.0, 0.3})}};
  for (const auto& backend : backends())  // 0.3 * 64 = 19.2 is between the values 18 and 20
    EXPECT_EQ(runPlan(graph, unfused(graph), backend, 1, given).at("y"), (std::vector<double>{7.0, 5.0, 20.0 / 64}));
}

/// Delayed scaling: scale = (format max / amax) / 2^margin after every step, with the scale of the step before in use.
TEST(QuantizeOpOfOneScale, HasAStateUnderDelayedScaling) {
  Attributes fields;
  fields.set("margin", std::int64_t{2});
  const Graph graph = under(recipe("DelayedScaling", fields), chain(DType::F32, {4}, {quantizeLink(true, true, "q")}));
  const Plan plan = makePlan(graph, unfused(graph));
  const auto values = [](std::vector<double> numbers) { return Tensor::fromDoubles({DType::F32, {4}}, numbers); };
  const NamedTensors bindings =
      *makeBindings(graph, 1, {{"x", values({7.0, 0.3, 0.0, -1.0})}, {"grad.y", values({1.75, 1.1, 0.0, 1.0})}});
  for (const auto& backend : backends()) {
    const auto executor = *Executor::create(backend, graph, plan, bindings);
    ASSERT_TRUE(executor->run().hasValue());
    EXPECT_EQ(executor->read("y")->toDoubles(), (std::vector<double>{7.0, 0.3125, 0.0, -1.0}));
    const std::string states = "DelayedScaling-HYBRID/q/";
    EXPECT_EQ(executor->read(states + "forward/input.scale")->toDoubles().front(), 448.0 / 7.0 / 4.0);
    EXPECT_EQ(executor->read(states + "backward/grad_output.scale")->toDoubles().front(), 57344.0 / 1.75 / 4.0);
    ASSERT_TRUE(executor->run().hasValue());
    // 0.3 * 16 = 4.8 is between the values 4.5 and 5; 1.1 * 8192 = 9011.2 between 8192 and 10240.
    EXPECT_EQ(executor->read("y")->toDoubles(), (std::vector<double>{7.0, 5.0 / 16, 0.0, -1.0}));
    EXPECT_EQ(executor->read("grad.x")->toDoubles(), (std::vector<double>{1.75, 1.0, 0.0, 1.0}));
  }
}

}  // namespace
}  // namespace fuseline
