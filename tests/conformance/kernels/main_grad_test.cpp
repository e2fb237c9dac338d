// Weight gradients that are added to a main_grad buffer (in float32, prefilled with 0.5).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
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

constexpr double kPrefilled = 0.5;

Link accumulating(Link link) { return with(std::move(link), "accumulate_into_main_grad", true); }

bool isLinear(const Link& link) { return link.operation == "BasicLinear" || link.operation == "GroupedLinear"; }

std::vector<Link> accumulating(std::vector<Link> links) {
  for (Link& link : links)
    if (isLinear(link)) link = accumulating(link);
  return links;
}

/// 0.5 in every main_grad buffer of the graph.
NamedTensors prefilledBuffers(const Graph& graph) {
  NamedTensors buffers;
  for (const Node& node : graph.nodes())
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
      if (node.gradientSink(slot) == GradientSink::Accumulate) {
        const TensorSpec& spec = node.parameterGradients[static_cast<std::size_t>(slot)];
        const std::vector<double> values(static_cast<std::size_t>(spec.numElements()), kPrefilled);
        buffers.emplace_back(node.parameterGradientName(slot), Tensor::fromDoubles(spec, values));
      }
  return buffers;
}

/// The results of a graph without buffers, with 0.5 added where the other graph has one.
RunResults expectedOf(const Graph& plain, const NamedTensors& buffers) {
  RunResults results = runPlan(plain, unfused(plain), makeReferenceBackend());
  for (const auto& [name, buffer] : buffers) {
    auto gradient = results.extract(name.substr(std::string("main_").size()));
    for (double& value : gradient.mapped()) value += kPrefilled;
    gradient.key() = name;
    results.insert(std::move(gradient));
  }
  return results;
}

void expectAdded(DType dtype, const Shape& shape, const std::vector<Link>& links, const ChainOptions& options,
                 const std::shared_ptr<Backend>& backend, const std::string& label) {
  const Graph graph = chain(dtype, shape, accumulating(links), options);
  const NamedTensors buffers = prefilledBuffers(graph);
  const RunResults expected = expectedOf(chain(dtype, shape, links, options), buffers);
  const auto fused =
      fuse(graph, {.switches = everythingAsked(builtinRules()), .capabilities = capabilitiesOf(backend)});
  for (const FusionReport& report : {unfused(graph), *fused})
    EXPECT_EQ(differenceFromReference(graph, runPlan(graph, report, backend, 1, buffers), expected,
                                      8 * toleranceOf(dtype).relative),
              "")
        << label << " in " << dtypeName(dtype);
}

TEST(MainGrad, IsAddedToLikeTheReference) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    for (const auto& [N, K] : {std::pair{64, 32}, {3, 5}, {128, 128}})
      for (const Shape& leading : {Shape{}, {5, 1}, {4, 2, 4}, {128}, {1200}, {0}})
        for (const auto& backend : {cpu::makeCpuBackend(), makeReferenceBackend()}) {
          Shape shape = leading;
          shape.push_back(K);
          expectAdded(dtype, shape, {linear(N)}, {}, backend, "BasicLinear of " + toString(shape));
        }
}

TEST(MainGrad, IsAddedToByEveryGroup) {
  for (const DType dtype : {DType::F32, DType::BF16})
    for (const bool isSingle : {false, true})
      for (const std::int64_t numGroups : {1, 5})
        for (const auto& backend : {cpu::makeCpuBackend(), makeReferenceBackend()}) {
          const Link groups = with(
              with(with(link("GroupedLinear", "experts"), "out_features", std::int64_t{24}), "num_groups", numGroups),
              "single_grouped_weight", isSingle);
          expectAdded(dtype, {40, 16}, {groups}, {}, backend, "GroupedLinear");
        }
}

class MainGradInRules : public ::testing::TestWithParam<const FusionRule*> {};

TEST_P(MainGradInRules, IsAddedToLikeTheReference) {
  for (const RuleSample& sample : ruleSamples(GetParam()->name))
    if (std::ranges::any_of(sample.links, isLinear))
      for (const DType dtype : {DType::F32, DType::BF16})
        expectAdded(dtype, {6, 16}, sample.links, sample.options, cpu::makeCpuBackend(), sample.label);
}

INSTANTIATE_TEST_SUITE_P(RuleBook, MainGradInRules, ::testing::ValuesIn(builtinRules().all()),
                         [](const auto& test) { return test.param->name; });

Graph oneLinear(const Link& link) { return chain(DType::BF16, {6, 16}, {link}); }

TEST(MainGrad, IsAFloat32BufferThatStartsAtZero) {
  const Graph graph = oneLinear(accumulating(linear(4, "fc")));
  const Plan plan = makePlan(graph, unfused(graph));
  const PlanTensor& buffer = plan.tensors.at(static_cast<std::size_t>(plan.findTensor("main_grad.fc.weight")));
  EXPECT_EQ(buffer.spec, (TensorSpec{.dtype = DType::F32, .shape = {4, 16}}));
  const Graph plain = oneLinear(linear(4, "fc"));
  const RunResults expected = runPlan(plain, unfused(plain), makeReferenceBackend());
  const RunResults actual = runPlan(graph, unfused(graph), cpu::makeCpuBackend());
  EXPECT_TRUE(allClose(actual.at("main_grad.fc.weight"), expected.at("grad.fc.weight"), toleranceOf(DType::BF16)));
}

/// As over micro-batches: the second run adds the same gradient again.
TEST(MainGrad, GrowsFromRunToRunUnlessItIsOverwritten) {
  const auto afterTwoRuns = [](const Link& link) {
    const Graph graph = oneLinear(link);
    const Plan plan = makePlan(graph, unfused(graph));
    const auto executor = Executor::create(cpu::makeCpuBackend(), graph, plan, *makeBindings(graph, 1, {}));
    const auto read = [&] { return (*executor)->read("main_grad.fc.weight")->toDoubles(); };
    (void)(*executor)->run();
    const std::vector<double> first = read();
    (void)(*executor)->run();
    return std::pair{first, read()};
  };
  const auto [once, twice] = afterTwoRuns(accumulating(linear(4, "fc")));
  std::vector<double> doubled = once;
  for (double& value : doubled) value *= 2;
  EXPECT_TRUE(allClose(twice, doubled, toleranceOf(DType::F32)));
  const auto [first, second] = afterTwoRuns(with(accumulating(linear(4, "fc")), "overwrite_main_grad", true));
  EXPECT_EQ(first, second);
  EXPECT_TRUE(allClose(first, once, toleranceOf(DType::F32)));
}

TEST(MainGrad, RefusesABufferOfAnotherShapeOrDtype) {
  const Graph graph = oneLinear(accumulating(linear(4, "fc")));
  for (const TensorSpec& wrong : {TensorSpec{DType::BF16, {4, 16}}, TensorSpec{DType::F32, {16, 4}}}) {
    const auto bindings = makeBindings(graph, 1, {{"main_grad.fc.weight", Tensor::zeros(wrong)}});
    ASSERT_FALSE(bindings);
    EXPECT_EQ(bindings.error().message,
              "main_grad.fc.weight: the given tensor is " + toString(wrong) + ", but the pipeline needs [4, 16] f32.");
  }
}

/// A buffer that is added to is read and written.
TEST(MainGrad, CountsItsTrafficBothWays) {
  const auto backwardStep = [](const Link& link) {
    const Graph graph = oneLinear(link);
    return makePlan(graph, unfused(graph)).steps.back();
  };
  const Step plain = backwardStep(linear(4));
  const Step added = backwardStep(accumulating(linear(4)));
  EXPECT_EQ(added.bytesRead - plain.bytesRead, 4 * 16 * 4);
  EXPECT_EQ(added.bytesWritten - plain.bytesWritten, 4 * 16 * (4 - 2));
}

}  // namespace
}  // namespace fuseline
