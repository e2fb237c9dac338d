// Partially frozen pipelines: only the requested gradients, and equal to the reference's.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/ops/catalog.h"
#include "core/ops/parameters.h"
#include "core/plan/plan.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/compare.h"
#include "tests/support/pipelines.h"
#include "tests/support/rule_samples.h"
#include "tests/support/run_plan.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

constexpr double kRelative = 8 * 0x1p-8;  // eight roundings of bf16, in a chain of ops

const FusibleOperation& operationOf(const Link& link) { return *builtinOperations().find(link.operation); }

Link frozen(Link link, const std::string& parameter) {
  return with(std::move(link), requiresGradName(parameter), false);
}

/// Every parameter of the links frozen by itself, then all of them.
std::vector<std::vector<Link>> frozenVariants(const std::vector<Link>& links) {
  std::vector<std::vector<Link>> variants;
  std::vector<Link> all = links;
  for (std::size_t i = 0; i < links.size(); ++i)
    for (const ParameterSpec& parameter : operationOf(links[i]).parameters) {
      variants.push_back(links);
      variants.back()[i] = frozen(links[i], parameter.name);
      all[i] = frozen(all[i], parameter.name);
    }
  if (!variants.empty()) variants.push_back(all);
  return variants;
}

/// The gradients that a plan must produce: of inputs that request one, and of trained parameters.
std::vector<std::string> wantedGradients(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.inputs())
    if (graph.value(id).needsGradient) names.push_back("grad." + graph.value(id).name);
  for (const Node& node : graph.nodes())
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
      if (isTrained(*node.operation, node.attributes, slot)) names.push_back(node.parameterGradientName(slot));
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> gradientsIn(const RunResults& results) {
  std::vector<std::string> names;
  for (const auto& [name, values] : results)
    if (name.starts_with("grad.")) names.push_back(name);
  return names;
}

void expectLikeReference(const Graph& graph, const FusionReport& report, const std::string& label) {
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  const RunResults actual = runPlan(graph, report, cpu::makeCpuBackend());
  EXPECT_EQ(differenceFromReference(graph, actual, expected, kRelative), "") << label << "\n" << toString(graph);
  EXPECT_EQ(gradientsIn(actual), wantedGradients(graph)) << label << "\n" << toString(graph);
}

class FrozenOps : public ::testing::TestWithParam<const FusibleOperation*> {};

TEST_P(FrozenOps, GiveTheOtherGradientsLikeTheReference) {
  for (const std::vector<Link>& links : frozenVariants({sampleLink(GetParam()->name)}))
    for (const bool isInputTrained : {true, false})
      for (const Shape& shape : {Shape{7, 62}, Shape{0, 16}}) {
        const Graph graph = chain(DType::BF16, shape, links, {.inputRequiresGradient = isInputTrained});
        expectLikeReference(graph, unfused(graph), GetParam()->name);
      }
}

/// The input of the others is no tensor of numbers, which a chain has.
std::vector<const FusibleOperation*> operationsWithParameters() {
  std::vector<const FusibleOperation*> found;
  for (const auto& op : builtinOperations().operations())
    if (!op->isComposite() && !op->parameters.empty() && op->inputs[0].elements != PortElements::Counts)
      found.push_back(op.get());
  return found;
}

INSTANTIATE_TEST_SUITE_P(Catalog, FrozenOps, ::testing::ValuesIn(operationsWithParameters()),
                         [](const auto& test) { return test.param->name; });

class FrozenInRules : public ::testing::TestWithParam<const FusionRule*> {};

TEST_P(FrozenInRules, GiveTheOtherGradientsLikeTheReference) {
  const auto backend = cpu::makeCpuBackend();
  for (const RuleSample& sample : ruleSamples(GetParam()->name))
    for (const std::vector<Link>& links : frozenVariants(sample.links))
      for (const bool isInputTrained : {true, false}) {
        ChainOptions options = sample.options;
        options.inputRequiresGradient = isInputTrained && sample.options.inputRequiresGradient;
        const Graph graph = chain(DType::BF16, {6, 16}, links, options);
        const auto report =
            fuse(graph, {.switches = everythingAsked(builtinRules()), .capabilities = capabilitiesOf(backend)});
        ASSERT_TRUE(report) << report.error().message;
        expectLikeReference(graph, *report, sample.label);
      }
}

INSTANTIATE_TEST_SUITE_P(RuleBook, FrozenInRules, ::testing::ValuesIn(builtinRules().all()),
                         [](const auto& test) { return test.param->name; });

TEST(Frozen, AFormulaFreezesItsParametersTogether) {
  const Link formula = with(with(link("Formula", "f"), "y", std::string("alpha * x + beta")), "parameters",
                            std::string("alpha = 2, beta[1] = 1"));
  const Graph trained = chain(DType::F32, {4, 6}, {formula});
  const Graph fixed = chain(DType::F32, {4, 6}, {with(formula, "requires_grad", false)});
  const auto gradients = [](const Graph& graph) {
    return gradientsIn(runPlan(graph, unfused(graph), cpu::makeCpuBackend()));
  };
  EXPECT_EQ(gradients(trained), (std::vector<std::string>{"grad.f.alpha", "grad.f.beta", "grad.x"}));
  EXPECT_EQ(gradients(fixed), std::vector<std::string>{"grad.x"});
}

/// The input of a linear is kept for its weight's gradient alone.
TEST(Frozen, KeepsNothingForAFrozenWeight) {
  const auto savedBytes = [](const Link& layer) {
    const Graph graph = chain(DType::F32, {4, 6}, {link("ConstantScale"), layer});
    return makePlan(graph, unfused(graph)).savedForBackwardBytes;
  };
  EXPECT_EQ(savedBytes(linear(5)), 4 * 6 * 4);
  EXPECT_EQ(savedBytes(frozen(linear(5), "weight")), 0);
}

TEST(Frozen, PlansNoBackwardWhereNothingIsTrained) {
  const Graph graph =
      chain(DType::F32, {4, 6}, {frozen(linear(5), "weight"), link("GELU")}, {.inputRequiresGradient = false});
  for (const Step& step : makePlan(graph, unfused(graph)).steps) EXPECT_EQ(step.phase, Phase::Forward) << step.name;
}

}  // namespace
}  // namespace fuseline
