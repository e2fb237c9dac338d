// Fused quantization: the steps that quantize their result, and the refusals of the others.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "tests/support/pipelines.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

Graph delayed(const std::vector<Link>& links, Shape shape = {64, 32}) {
  return chain(DType::BF16, std::move(shape), links, {.recipe = "DelayedScaling"});
}

/// The first attempt of the rule.
Attempt attemptOf(const Graph& graph, const std::string& rule, const FusionOptions& options = {}) {
  const FusionReport report = std::move(*fuse(graph, options));
  const auto found =
      std::ranges::find_if(report.attempts, [&](const Attempt& attempt) { return attempt.rule->name == rule; });
  if (found == report.attempts.end()) throw std::runtime_error("no attempt of " + rule + "\n" + toTree(graph, report));
  return *found;
}

TEST(FusedOperand, LeavesTheListsAlone) {
  const Graph graph = delayed({link("RMSNorm"), linear(32), link("GELU")});
  const FusionReport report = std::move(*fuse(graph, {.book = RuleBook::Te}));
  const FusionReport without =
      std::move(*fuse(graph, {.book = RuleBook::Te, .switches = {.without = {"ForwardQuantize", "BackwardQuantize"}}}));
  EXPECT_EQ(report.fusedOperands.size(), 2u);
  EXPECT_TRUE(without.fusedOperands.empty());
  EXPECT_EQ(toText(graph, report.forward), toText(graph, without.forward));
  EXPECT_EQ(toText(graph, report.backward), toText(graph, without.backward));
}

TEST(FusedOperand, SavesTheTensorAndTheReadingOfIt) {
  const Attempt alone = attemptOf(delayed({link("RMSNorm"), linear(32)}), "ForwardQuantize");
  EXPECT_EQ(alone.outcome, Outcome::Fused);
  EXPECT_EQ(alone.saving, (Saving{.bytes = 2 * 64 * 32 * 2, .launches = 1}));
  const Graph readTwice = delayed({link("RMSNorm", "n"), linear(32), link("AddExtraInput", "add", "n.y")});
  EXPECT_EQ(attemptOf(readTwice, "ForwardQuantize").saving, (Saving{.bytes = 64 * 32 * 2, .launches = 1}));
}

TEST(FusedOperand, NeedsARecipe) {
  const Graph graph = chain(DType::BF16, {64, 32}, {link("RMSNorm"), linear(32)});
  const FusionReport report = std::move(*fuse(graph));
  EXPECT_TRUE(std::ranges::none_of(report.attempts,
                                   [](const Attempt& attempt) { return attempt.rule->name == "ForwardQuantize"; }));
}

TEST(FusedOperand, IsSwitchedOffAtOneOp) {
  const Graph graph = delayed({link("RMSNorm", "a"), linear(32, "b"), link("GELU", "c"), linear(32, "d")});
  const FusionOptions options{.switches = {.without = {"ForwardQuantize@a"}}};
  const Attempt attempt = attemptOf(delayed({link("RMSNorm", "a"), linear(32, "b")}), "ForwardQuantize", options);
  EXPECT_EQ(attempt.outcome, Outcome::SwitchedOff);
  EXPECT_EQ(attempt.explanation, "ForwardQuantize is switched off by \"ForwardQuantize@a\".");
  const FusionReport report = std::move(*fuse(graph, options));
  EXPECT_EQ(std::ranges::count(report.fusedOperands, TensorType::Input, &FusedOperand::type), 1);
}

TEST(FusedOperand, DoesNotCrossTheBorderOfASequential) {
  const Attempt attempt =
      attemptOf(delayed({inside("inner", link("RMSNorm", "norm")), linear(32, "fc")}), "ForwardQuantize");
  EXPECT_EQ(attempt.outcome, Outcome::BrokenChain);
  EXPECT_NE(attempt.explanation.find("boundary of inner"), std::string::npos) << attempt.explanation;
  EXPECT_FALSE(attempt.repairs.empty());
}

TEST(FusedOperand, IsRefusedWhereTheGradientIsASum) {
  const Attempt attempt = attemptOf(
      delayed({linear(32, "fc"), link("GELU", "a"), link("AddExtraInput", "add", "fc.y")}), "BackwardQuantize");
  EXPECT_EQ(attempt.outcome, Outcome::OutsideUse);
  EXPECT_EQ(attempt.explanation, "The gradient of fc.y is the sum of 2 gradients, computed by a separate step.");
}

TEST(FusedOperand, IsRefusedWhereTheResultIsAView) {
  const Attempt attempt = attemptOf(delayed({linear(32, "fc"), link("AddExtraInput", "add")}), "BackwardQuantize");
  EXPECT_EQ(attempt.outcome, Outcome::ConditionFailed);
  EXPECT_EQ(attempt.explanation, "add passes its input on, so it writes no tensor that could be quantized.");
}

/// As te.ops.Bias, which sums and quantizes its gradient in one kernel.
TEST(FusedOperand, GoesWithTheSumOfABiasGradient) {
  const Graph graph = delayed({linear(32, "fc"), link("Bias", "bias")});
  for (const RuleBook book : {RuleBook::All, RuleBook::Te}) {
    const Attempt attempt = attemptOf(graph, "BackwardQuantize", {.book = book});
    EXPECT_EQ(attempt.outcome, Outcome::Fused) << attempt.explanation;
    EXPECT_EQ(attempt.saving, (Saving{.bytes = 64 * 32 * 2, .launches = 1}));
  }
  const Plan plan = makePlan(graph, std::move(*fuse(graph)));
  const auto bias = std::ranges::find_if(
      plan.steps, [](const Step& step) { return step.phase == Phase::Backward && step.name == "bias"; });
  ASSERT_NE(bias, plan.steps.end());
  EXPECT_EQ(bias->note, "quantizes fc.grad_output");
  EXPECT_EQ(bias->copies.size(), 1u);
  EXPECT_EQ(bias->find({0, OperandKind::GradInput, 0}), nullptr);
  EXPECT_EQ(std::ranges::find(plan.steps, "fc.quantize_grad_output", &Step::name), plan.steps.end());
}

/// The whole book asks the norm that makes the gradient, which the bias still reads; TransformerEngine the neighbor.
TEST(FusedOperand, GoesPastABiasToTheStepThatMakesItsGradient) {
  const Graph graph = delayed({linear(32, "fc"), link("Bias", "bias"), link("RMSNorm", "norm")});
  for (const RuleBook book : {RuleBook::All, RuleBook::Te}) {
    EXPECT_EQ(attemptOf(graph, "BackwardQuantize", {.book = book}).saving,
              (Saving{.bytes = 64 * 32 * 2, .launches = 1}));
    const Plan plan = makePlan(graph, std::move(*fuse(graph, {.book = book})));
    const auto quantizing = std::ranges::find(plan.steps, std::string("quantizes fc.grad_output"), &Step::note);
    ASSERT_NE(quantizing, plan.steps.end()) << toString(plan);
    EXPECT_EQ(quantizing->name, book == RuleBook::All ? "norm" : "bias");
  }
}

TEST(FusedOperand, IsRefusedAtABiasWithoutAGradientOrWithAnAmaxThatIsNeededFirst) {
  const auto explanationAt = [](Link bias, const char* recipe, const char* rule) {
    return attemptOf(chain(DType::BF16, {64, 32}, {linear(32, "fc"), std::move(bias)}, {.recipe = recipe}), rule)
        .explanation;
  };
  EXPECT_EQ(
      explanationAt(with(link("Bias", "bias"), "bias_requires_grad", false), "DelayedScaling", "BackwardQuantize"),
      "bias passes its input on, so it writes no tensor that could be quantized.");
  EXPECT_NE(explanationAt(link("Bias", "bias"), "Float8CurrentScaling", "BackwardAmax").find("needs the amax before"),
            std::string::npos);
}

TEST(FusedOperand, LooksThroughViews) {
  // The gradient of fc.y is that of add.y, which the norm's backward makes.
  const Graph graph = delayed({linear(32, "fc"), link("AddExtraInput", "add"), link("RMSNorm", "norm")});
  const Attempt attempt = attemptOf(graph, "BackwardQuantize");
  EXPECT_EQ(attempt.outcome, Outcome::Fused) << attempt.explanation;
  EXPECT_EQ(attempt.nodes, (std::vector<NodeId>{0, 2}));
  const Plan plan = makePlan(graph, std::move(*fuse(graph)));
  const auto quantizing = std::ranges::find_if(plan.steps, [](const Step& step) {
    return step.phase == Phase::Backward && !step.isQuantize() && !step.copies.empty();
  });
  ASSERT_NE(quantizing, plan.steps.end());
  EXPECT_EQ(quantizing->name, "norm");
  EXPECT_EQ(attemptOf(graph, "BackwardQuantize", {.book = RuleBook::Te}).outcome, Outcome::ConditionFailed);
}

/// TransformerEngine's BasicLinear takes the quantizers of its neighbors, if their scales are known beforehand.
TEST(FusedOperand, IsWrittenByTheGemmOfAnotherLinear) {
  const std::vector<Link> links = {linear(32, "a"), linear(32, "b")};
  for (const RuleBook book : {RuleBook::All, RuleBook::Te})
    for (const char* rule : {"ForwardQuantize", "BackwardQuantize"}) {
      const Attempt attempt = attemptOf(delayed(links), rule, {.book = book});
      EXPECT_EQ(attempt.outcome, Outcome::Fused) << attempt.explanation;
      EXPECT_EQ(attempt.saving, (Saving{.bytes = 2 * 64 * 32 * 2, .launches = 1}));
    }
  const Graph mxfp8 = chain(DType::BF16, {64, 32}, links, {.recipe = "MXFP8BlockScaling"});
  EXPECT_EQ(attemptOf(mxfp8, "ForwardQuantize").explanation,
            "The GEMM of a can quantize its result for b only with a scale that is known in advance, as with "
            "DelayedScaling.");
  const Graph biased = delayed({linear(32, "a"), link("Bias"), linear(32, "b")});
  EXPECT_EQ(attemptOf(biased, "ForwardQuantize", {.book = RuleBook::Te}).outcome, Outcome::Fused);
}

TEST(FusedOperand, IsNotWrittenByAGemmWhoseResultIsCommunicated) {
  const auto attempts = [](const char* first, const char* second, const char* rule) {
    const auto inMode = [](Link link, const char* mode) {
      return with(std::move(link), "tensor_parallel_mode", std::string(mode));
    };
    const FusionReport report =
        std::move(*fuse(delayed({inMode(linear(32, "a"), first), inMode(linear(32, "b"), second)})));
    return std::ranges::count_if(report.attempts, [&](const Attempt& each) { return each.rule->name == rule; });
  };
  EXPECT_EQ(attempts("row", "none", "ForwardQuantize"), 0);
  EXPECT_EQ(attempts("none", "row", "ForwardQuantize"), 1);
  EXPECT_EQ(attempts("none", "column", "BackwardQuantize"), 0);
}

TEST(FusedOperand, FollowsTransformerEngineInItsBook) {
  // fuser.py hands quantizers to norms and activations; an AddExtraInput knows none.
  const auto outcomeIn = [](RuleBook book) {
    return attemptOf(delayed({link("AddExtraInput", "add"), linear(32)}), "ForwardQuantize", {.book = book}).outcome;
  };
  EXPECT_EQ(outcomeIn(RuleBook::All), Outcome::Fused);
  EXPECT_EQ(outcomeIn(RuleBook::Te), Outcome::ConditionFailed);
}

TEST(FusedOperand, AsksTheDeviceForTheCopies) {
  std::vector<std::string> asked;
  const Capabilities capabilities = [&](const KernelQuery& query) {
    if (!query.copies) return Verdict::yes();
    asked.push_back(fmt::format("{} {}", query.kernel, toString(query.copies->spec)));
    return Verdict::no("No copies here.");
  };
  const Attempt attempt =
      attemptOf(delayed({link("RMSNorm"), linear(32)}), "ForwardQuantize", {.capabilities = capabilities});
  EXPECT_EQ(attempt.outcome, Outcome::NoKernel);
  EXPECT_EQ(attempt.explanation, "No copies here.");
  EXPECT_EQ(asked, std::vector<std::string>{"RMSNorm [64, 32] bf16"});
}

// Amaxes -----------------------------------------------------------------------------------------------------------

Graph current(const std::vector<Link>& links) {
  return chain(DType::BF16, {64, 32}, links, {.recipe = "Float8CurrentScaling"});
}

TEST(FusedOperand, HandsOverTheAmaxAlone) {
  const Graph graph = current({link("RMSNorm", "norm"), linear(32, "fc")});
  const Attempt attempt = attemptOf(graph, "ForwardAmax");
  EXPECT_EQ(attempt.outcome, Outcome::Fused);
  EXPECT_EQ(attempt.explanation, "norm computes the amax with which fc quantizes its input.");
  EXPECT_EQ(attempt.saving, (Saving{.bytes = 64 * 32 * 2, .launches = 0}));
  EXPECT_EQ(attemptOf(graph, "ForwardQuantize").outcome, Outcome::ConditionFailed);
}

TEST(FusedOperand, OffersNoAmaxWhereCopiesAreHandedOver) {
  const FusionReport report = std::move(*fuse(delayed({link("RMSNorm"), linear(32)})));
  EXPECT_TRUE(std::ranges::none_of(report.attempts,
                                   [](const Attempt& attempt) { return attempt.rule->name == "ForwardAmax"; }));
}

TEST(FusedOperand, NamesTheStateWhereCopiesCouldNotBeHandedOver) {
  const Graph graph = delayed({link("RMSNorm", "norm"), linear(32, "fc")});
  const Attempt attempt = attemptOf(graph, "ForwardAmax", {.switches = {.without = {"ForwardQuantize"}}});
  EXPECT_EQ(attempt.outcome, Outcome::ConditionFailed);
  EXPECT_EQ(attempt.explanation, "The scale of the input of fc is known in advance, so its amax is not needed first.");
}

TEST(FusedOperand, AsksTheDeviceForTheAmax) {
  const Capabilities capabilities = [](const KernelQuery& query) {
    return query.copies && query.copies->isAmaxOnly() ? Verdict::no("No amaxes here.") : Verdict::yes();
  };
  const Attempt attempt =
      attemptOf(current({link("RMSNorm"), linear(32)}), "ForwardAmax", {.capabilities = capabilities});
  EXPECT_EQ(attempt.outcome, Outcome::NoKernel);
  EXPECT_EQ(attempt.explanation, "No amaxes here.");
}

TEST(FusedOperand, FindsOneAmaxForTwoReaders) {
  const Graph graph = current(
      {link("GELU", "act"), linear(32, "q"), reading("act.y", linear(32, "k")), link("AddExtraInput", "add", "q.y")});
  const Plan plan = makePlan(graph, std::move(*fuse(graph)));
  const auto stepOf = [&](const char* name) { return *std::ranges::find(plan.steps, name, &Step::name); };
  const Step act = stepOf("act");
  EXPECT_EQ(act.note, "computes the amax of k.input");
  const StepOperand* const found = act.find({1, OperandKind::Output, 2});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(plan.tensors[static_cast<std::size_t>(found->tensor)].name, "amax:act:y");
  EXPECT_NE(act.find({0, OperandKind::Output, 0}), nullptr);
  const StepOperand* const read = stepOf("k.quantize_input").find({0, OperandKind::Input, 2});
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->tensor, found->tensor);
  EXPECT_TRUE(std::ranges::none_of(plan.steps, [](const Step& step) { return step.name == "q.quantize_input"; }));
}

/// Quantized values of these recipes follow from the tensor alone.
TEST(FusedOperand, SavesOneQuantizationForTwoReadersOfOneTensor) {
  const Graph graph = current(
      {link("GELU", "act"), linear(32, "q"), reading("act.y", linear(32, "k")), link("AddExtraInput", "add", "q.y")});
  const FusionReport report = std::move(*fuse(graph));
  std::vector<std::int64_t> saved;
  for (const Attempt& attempt : report.attempts)
    if (attempt.rule->name == "ForwardAmax" && attempt.outcome == Outcome::Fused)
      saved.push_back(attempt.saving->bytes);
  EXPECT_EQ(saved, (std::vector<std::int64_t>{64 * 32 * 2, 0}));
}

// Plans ------------------------------------------------------------------------------------------------------------

TEST(FusedOperand, MakesTheCopiesOfSeveralReadersInOneStep) {
  const Graph graph = delayed(
      {link("GELU", "act"), linear(32, "q"), reading("act.y", linear(32, "k")), link("AddExtraInput", "add", "q.y")});
  const Plan plan = makePlan(graph, std::move(*fuse(graph)));
  const auto act = std::ranges::find(plan.steps, "act", &Step::name);
  ASSERT_NE(act, plan.steps.end());
  EXPECT_EQ(act->copies.size(), 2u);
  EXPECT_EQ(act->note, "quantizes k.input; quantizes q.input");
  EXPECT_EQ(act->find({0, OperandKind::Output, 0}), nullptr);
}

}  // namespace
}  // namespace fuseline
