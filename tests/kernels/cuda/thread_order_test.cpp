// The bits do not depend on the order of turns: blocks are independent, and threads wait where they must.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/ops/catalog.h"
#include "core/quant/apply_recipe.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "tests/support/op_samples.h"
#include "tests/support/pipelines.h"
#include "tests/support/random_pipelines.h"
#include "tests/support/rule_samples.h"
#include "tests/support/run_plan.h"
#include "tests/support/simt/host_compiler.h"
#include "tests/support/simt/simt.h"
#include "tests/support/simt/simt_backend.h"
#include "tests/support/structured_samples.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;
using simt::Turns;

/// Shared memory keeps its former content, which must not be right by coincidence: other data goes first.
RunResults resultsWith(Turns turns, std::uint64_t seed, const Graph& graph, const FusionReport& report,
                       const std::shared_ptr<Backend>& backend) {
  runPlan(graph, report, backend, 2);
  const simt::TurnsInScope scope(turns, seed);
  return runPlan(graph, report, backend);
}

bool runs(const Graph& graph, const FusionReport& report, const std::shared_ptr<Backend>& backend) {
  const Plan plan = makePlan(graph, report);
  return std::ranges::all_of(plan.steps, [&](const Step& step) {
    return step.isView || backend->supports({graph, step.kernel, step.phase, step.nodes});
  });
}

void expectSameInEveryOrder(const Graph& graph, const FusionReport& report, const std::shared_ptr<Backend>& backend,
                            const std::string& label) {
  if (!runs(graph, report, backend)) return;
  const RunResults ascending = resultsWith(Turns::Ascending, 0, graph, report, backend);
  EXPECT_TRUE(resultsWith(Turns::Descending, 0, graph, report, backend) == ascending) << label << ", descending";
  EXPECT_TRUE(resultsWith(Turns::Random, 1, graph, report, backend) == ascending) << label << ", at random";
}

/// Warps and blocks for rows, packets and single columns, and several blocks of each.
const std::vector<Shape> kUnevenShapes = {{7, 62}, {70, 272}, {3, 2064}};

class ThreadOrder : public ::testing::TestWithParam<const FusibleOperation*> {};

TEST_P(ThreadOrder, DoesNotChangeAnOp) {
  const auto backend = makeSimtBackend();
  const bool isLinear = GetParam()->name == "BasicLinear" || GetParam()->name == "GroupedLinear";
  for (const Shape& shape : kUnevenShapes) {
    const Link op = isLinear ? with(link(GetParam()->name), "out_features", std::int64_t{21}) : link(GetParam()->name);
    const Graph graph = chain(DType::BF16, shape, {op});
    expectSameInEveryOrder(graph, unfused(graph), backend, toString(shape));
  }
}

INSTANTIATE_TEST_SUITE_P(Catalog, ThreadOrder, ::testing::ValuesIn(basicOperations()),
                         [](const auto& test) { return test.param->name; });

class ThreadOrderUnder : public ::testing::TestWithParam<const char*> {};

/// Tiles, which share memory for rows, encoded values and sums; followed by sums.
TEST_P(ThreadOrderUnder, DoesNotChangeWhatIsQuantized) {
  static const auto compiler = makeHostCompiler();
  const std::vector<Link> links = {link("LayerNorm"), linear(256), link("Bias"),
                                   link("SwiGLU"),    linear(128), link("RMSNorm")};
  for (const auto& backend : {makeSimtBackend(compiler.get()), makeSimtBackend()}) {
    const Graph graph = chain(DType::BF16, {256, 128}, links, {.recipe = GetParam()});
    const FusionReport report = std::move(*fuse(graph, {.capabilities = capabilitiesOf(backend)}));
    // FP4 is made when the whole tensor is there.
    ASSERT_EQ(report.fusedOperands.empty(), GetParam() == std::string("NVFP4BlockScaling")) << toTree(graph, report);
    expectSameInEveryOrder(graph, report, backend, GetParam());
    expectSameInEveryOrder(graph, unfused(graph), backend, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, ThreadOrderUnder,
                         ::testing::Values("DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling",
                                           "MXFP8BlockScaling", "NVFP4BlockScaling"),
                         [](const auto& test) { return std::string(test.param); });

/// Scales and histories after several steps.
std::vector<std::vector<double>> statesWith(Turns turns, const Graph& graph) {
  const simt::TurnsInScope scope(turns, 1);
  const Plan plan = makePlan(graph, unfused(graph));
  const auto executor = std::move(*Executor::create(makeSimtBackend(), graph, plan, *makeBindings(graph, 3)));
  for (int run = 0; run < 3; ++run) EXPECT_TRUE(executor->run());
  std::vector<std::vector<double>> states;
  for (const QuantizerState& state : quantizerStates(graph))
    for (const std::string& name : {state.scaleName, state.historyName})
      states.push_back(executor->read(name)->toDoubles());
  return states;
}

TEST(ThreadOrderOf, UpdatesOfScalesDoesNotMatter) {
  const Graph graph = chain(DType::BF16, {64, 32}, {linear(32)}, {.recipe = "DelayedScaling"});
  const auto ascending = statesWith(Turns::Ascending, graph);
  ASSERT_FALSE(ascending.empty());
  EXPECT_GT(ascending[1].size(), 512u);  // more than a block has threads, several times
  EXPECT_EQ(statesWith(Turns::Descending, graph), ascending);
  EXPECT_EQ(statesWith(Turns::Random, graph), ascending);
}

/// A scalar's gradient, summed by several warps.
TEST(ThreadOrderOf, SumsOfAllElementsDoesNotMatter) {
  const auto backend = makeSimtBackend();
  const Graph graph = chain(DType::F32, {1, 20480}, {link("ScaledSwiGLU")});
  expectSameInEveryOrder(graph, unfused(graph), backend, "one row");
}

/// Several blocks of slots, more experts than a block has threads, and tokens that are counted together.
TEST(ThreadOrderOf, RoutingAndPermutationDoesNotMatter) {
  const auto backend = makeSimtBackend();
  const std::vector<OpSample> samples = {
      sampleOf("TopKRouter", {{"topk", std::int64_t{4}}, {"use_pre_softmax", true}}, {{DType::F32, {9, 70}}}),
      sampleOf("TopKRouter",
               {{"topk", std::int64_t{4}},
                {"score_function", std::string("sigmoid")},
                {"num_groups", std::int64_t{8}},
                {"group_topk", std::int64_t{2}}},
               {{DType::F32, {9, 64}}}),
      sampleOf("MoEPermute", {{"num_experts", std::int64_t{300}}, {"align_size", std::int64_t{4}}},
               {{DType::F32, {700, 8}}, {DType::I64, {700, 3}}}),
      sampleOf("MoEUnpermute", {}, {{DType::F32, {300, 40}}, {DType::I64, {100, 3}}, {DType::F32, {100, 3}}})};
  for (const OpSample& sample : samples) {
    const Graph graph = sampleGraph(sample, DType::BF16, ExecutionMode::Training);
    expectSameInEveryOrder(graph, unfused(graph), backend, sample.label);
  }
}

TEST(ThreadOrderOf, RandomPipelinesDoesNotMatter) {
  const auto backend = makeSimtBackend();
  EXPECT_TRUE(rc::check("bits do not depend on who has the first turn", [&] {
    const RandomPipeline pipeline = randomPipeline();
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 70);
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const Graph graph = chain(DType::BF16, {rows, 16}, pipeline.links, pipeline.options);
    RC_LOG() << toString(graph);
    const FusionReport report =
        std::move(*fuse(graph, {.switches = pipeline.switches, .capabilities = capabilitiesOf(backend)}));
    RC_PRE(runs(graph, report, backend));
    RC_ASSERT(resultsWith(Turns::Random, seed, graph, report, backend) ==
              resultsWith(Turns::Ascending, 0, graph, report, backend));
  }));
}

}  // namespace
}  // namespace fuseline
