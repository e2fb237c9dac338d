// Routing, permutation and experts on the CPU: values that PyTorch's autograd gives in float64, and data they refuse.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/lowering/lowering.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"
#include "tests/support/structured_samples.h"

#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing::experts {
namespace {

std::vector<std::shared_ptr<Backend>> backends() {
  return {makeReferenceBackend(), cpu::makeCpuBackend({.threads = 1}), cpu::makeCpuBackend({.threads = 3})};
}

void expectNear(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6) << i;
}

Tensor numbers(const Shape& shape, const std::vector<double>& values) {
  return Tensor::fromDoubles({DType::F32, shape}, values);
}

Tensor counts(const Shape& shape, const std::vector<double>& values) {
  return Tensor::fromDoubles({DType::I64, shape}, values);
}

// ---- TopKRouter

struct RoutingCase {
  AttributeValues attributes;
  std::vector<double> experts;  // [4, 2]
  std::vector<double> probs;
  std::vector<double> gradLogits;  // [4, 4]
};

/// The gradient of the probability of expert e of token t is 0.1 (t + 1) + 0.2 e.
void expectRouting(const RoutingCase& expected) {
  AttributeValues given = expected.attributes;
  given.emplace_back("topk", std::int64_t{2});
  const Graph graph =
      sampleGraph(sampleOf("TopKRouter", given, {{DType::F32, {4, 4}}}), DType::F32, ExecutionMode::Training);
  std::vector<double> gradProbs;
  for (std::size_t i = 0; i < expected.experts.size(); ++i)
    gradProbs.push_back(0.1 * static_cast<double>(i / 2 + 1) + 0.2 * expected.experts[i]);
  NamedTensors data = {{"x", numbers({4, 4}, {1, 2, .5, -1, 0, 0, 0, 0, -2, .25, 3, 1.5, 1.5, -.5, .5, 1})},
                       {"grad.y", numbers({4, 2}, gradProbs)}};
  if (!graph.nodes().front().parameters.empty()) data.emplace_back("op.expert_bias", numbers({4}, {.1, -.3, .2, 0}));
  for (const auto& backend : backends()) {
    const RunResults results = runPlan(graph, unfused(graph), backend, 1, data);
    EXPECT_EQ(results.at("indices"), expected.experts);
    expectNear(results.at("y"), expected.probs);
    expectNear(results.at("grad.x"), expected.gradLogits);
  }
}

const AttributeValues kSigmoid = {
    {"score_function", std::string("sigmoid")}, {"expert_bias", true}, {"scaling_factor", 2.5}};

TEST(TopKRouter, TakesTheSoftmaxOfAllLogitsFirst) {
  expectRouting({{{"use_pre_softmax", true}},
                 {1, 0, 0, 1, 2, 3, 0, 3},
                 {.60946004, .22420782, .25, .25, .77291940, .17246163, .47399085, .28748998},
                 {-.02359984, .05774098, -.02791292, -.00622821, .01250000, .06250000, -.03750000, -.03750000,
                  -.00362604, -.03440291, .00289146, .03513750, -.03653821, -.03060398, -.08319025, .15033244}});
}

TEST(TopKRouter, TakesTheSoftmaxOfTheChosenLogits) {
  const RoutingCase expected = {
      {},
      {1, 0, 0, 1, 2, 3, 0, 3},
      {.73105858, .26894142, .5, .5, .81757448, .18242552, .62245933, .37754067},
      {-.03932239, .03932239, 0, 0, -.05, .05, 0, 0, 0, 0, -.02982929, .02982929, -.14100223, 0, 0, .14100223}};
  expectRouting(expected);
  expectRouting(
      {{{"use_pre_softmax", true}, {"norm_topk_prob", true}}, expected.experts, expected.probs, expected.gradLogits});
}

TEST(TopKRouter, ChoosesByTheBiasAndWeighsWithoutIt) {
  expectRouting(
      {kSigmoid,
       {0, 2, 2, 0, 2, 3, 0, 2},
       {1.35029351, 1.14970649, 1.25, 1.25, 1.34533073, 1.15466927, 1.41936681, 1.08063319},
       {-.06680252, 0, .09377755, 0, -.125, 0, .125, 0, 0, 0, -.00589375, .02267056, -.04476912, 0, .09265240, 0}});
}

TEST(TopKRouter, ChoosesInTheBestGroups) {
  AttributeValues given = kSigmoid;
  given.emplace_back("num_groups", std::int64_t{2});
  given.emplace_back("group_topk", std::int64_t{1});
  expectRouting(
      {given,
       {0, 1, 2, 3, 2, 3, 2, 3},
       {1.13387724, 1.36612276, 1.25, 1.25, 1.34533073, 1.15466927, 1.14970649, 1.35029351},
       {-.03332755, .01477177, 0, 0, 0, 0, -.0625, .0625, 0, 0, -.00589375, .02267056, 0, 0, -.04688878, .03340126}});
}

TEST(TopKRouter, PrefersNanAndThenTheLowerIndex) {
  const Graph graph = sampleGraph(sampleOf("TopKRouter", {{"topk", std::int64_t{3}}}, {{DType::F32, {2, 8}}}),
                                  DType::F32, ExecutionMode::Inference);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const NamedTensors data = {{"x", numbers({2, 8}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 1, kNan, 3, 2, 0, 0, 0})}};
  for (const auto& backend : backends()) {
    const RunResults results = runPlan(graph, unfused(graph), backend, 1, data);
    EXPECT_EQ(results.at("indices"), (std::vector<double>{0, 1, 2, 2, 3, 4}));
    EXPECT_EQ(results.at("tokens_per_expert"), (std::vector<double>{1, 1, 2, 1, 1, 0, 0, 0}));
  }
}

std::string routerError(const AttributeValues& given) {
  const OpSample sample = sampleOf("TopKRouter", given, {{DType::F32, {4, 6}}});
  const Result<OperationSpecs> specs = inferSpecs(*sample.operation, sample.attributes, sample.inputs);
  return specs ? "" : specs.error().message;
}

TEST(TopKRouter, RefusesAttributesThatDoNotFit) {
  EXPECT_EQ(routerError({{"topk", std::int64_t{7}}}), "TopKRouter: topk is 7, but the last axis of x has 6 experts.");
  EXPECT_NE(routerError({{"expert_bias", true}}).find("score_function is softmax"), std::string::npos);
  EXPECT_NE(routerError({{"num_groups", std::int64_t{4}}, {"group_topk", std::int64_t{1}}}).find("expected a divisor"),
            std::string::npos);
  EXPECT_NE(routerError({{"num_groups", std::int64_t{2}}}).find("Set both or neither"), std::string::npos);
}

// ---- the layer

/// Rows of three experts, of which each token has two.
std::string layerText(int alignSize) {
  return fmt::format(R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}}, "pipeline":
    {{"inputs": [{{"id": "x", "dtype": "f32", "shape": [3, 2], "requiresGradient": true}}],
    "ops": [{{"id": "save", "op": "MakeExtraOutput", "attributes": {{"in_place": false}}}},
            {{"id": "router", "op": "Linear", "attributes": {{"in_features": 2, "out_features": 3, "bias": false}}}},
            {{"id": "route", "op": "TopKRouter", "attributes": {{"topk": 2}}}},
            {{"id": "permute", "op": "MoEPermute", "attributes": {{"num_experts": 3, "align_size": {}}}}},
            {{"id": "experts", "op": "GroupedLinear", "attributes": {{"num_groups": 3, "in_features": 2,
                                                                     "out_features": 2, "bias": false}}}},
            {{"id": "combine", "op": "MoEUnpermute", "attributes": {{}}}}],
    "wires": [["x", "save.x"], ["save.y", "router.x"], ["router.y", "route.x"], ["save.extra", "permute.x"],
              ["route.indices", "permute.indices"], ["permute.y", "experts.x"],
              ["permute.split_sizes", "experts.split_sizes"], ["experts.y", "combine.x"],
              ["permute.row_id_map", "combine.row_id_map"], ["route.y", "combine.probs"]],
    "outputs": [{{"id": "y", "from": "combine.y"}}, {{"id": "sizes", "from": "permute.split_sizes"}}]}}}})",
                     alignSize);
}

TEST(MixtureOfExperts, SplitsRowsBySizesOfTheRun) {
  const NamedTensors data = {{"x", numbers({3, 2}, {.5, -1, 1.5, .25, -.75, 2})},
                             {"router.weight", numbers({3, 2}, {1, .5, -.5, 1, .25, -.75})},
                             {"experts.weight0", numbers({2, 2}, {1, 0, .5, -1})},
                             {"experts.weight1", numbers({2, 2}, {.25, 1, -1, .5})},
                             {"experts.weight2", numbers({2, 2}, {-.5, .75, 1, 1})},
                             {"grad.y", numbers({3, 2}, {1, -.5, .25, 2, -1, .75})}};
  for (const int alignSize : {1, 4}) {
    const LoweredGraph lowered = lower(parseDocument(layerText(alignSize)).document, {.pass = ExecutionMode::Training});
    for (const auto& backend : backends()) {
      const RunResults results = runPlan(lowered.graph, unfused(lowered.graph), backend, 1, data);
      expectNear(results.at("y"), {-.55867754, .01487620, 1.10413863, .73991598, 1.53910535, 1.30990130});
      EXPECT_EQ(results.at("sizes"), alignSize == 1 ? (std::vector<double>{3, 1, 2}) : (std::vector<double>{4, 4, 4}));
      expectNear(results.at("grad.x"), {-.38778668, .48578228, 1.13913362, -1.58098875, -1.03593936, -.61302021});
      expectNear(results.at("grad.router.weight"),
                 {-.35878317, -.30798873, -.03797417, .10126444, .39675733, .20672428});
      expectNear(results.at("grad.experts.weight0"), {.53015064, -.45709196, 2.29063444, .71117698});
      expectNear(results.at("grad.experts.weight1"), {.66998205, -1.78661881, -.50248654, 1.33996411});
      expectNear(results.at("grad.experts.weight2"), {.42486731, -.69378923, .39935210, .44885891});
    }
  }
}

// ---- MoEAuxLoss

/// Four tokens with two of four experts each.
RunResults auxLossOf(const AttributeValues& attributes, const std::shared_ptr<Backend>& backend) {
  AttributeValues given = attributes;
  given.emplace_back("topk", std::int64_t{2});
  const Graph graph = sampleGraph(sampleOf("MoEAuxLoss", given, {{DType::F32, {4, 4}}, {DType::I64, {4}}}), DType::F32,
                                  ExecutionMode::Training);
  return runPlan(graph, unfused(graph), backend, 1,
                 {{"x", numbers({4, 4}, {1, 2, .5, -1, 0, 0, 0, 0, -2, .25, 3, 1.5, 1.5, -.5, .5, 1})},
                  {"tokens_per_expert", counts({4}, {3, 2, 1, 2})}});
}

std::vector<double> rowOf(const RunResults& results, std::size_t row) {
  const std::vector<double>& gradients = results.at("grad.x");
  return {gradients.begin() + static_cast<std::ptrdiff_t>(4 * row),
          gradients.begin() + static_cast<std::ptrdiff_t>(4 * row + 4)};
}

TEST(MoEAuxLoss, IsThatOfTransformerEngineAndPyTorch) {
  for (const auto& backend : backends()) {
    const RunResults load = auxLossOf({{"coeff", 0.01}}, backend);
    expectNear(load.at("y"), {.0095251584});
    expectNear(rowOf(load, 0), {.25553556e-3, -.06720737e-3, -.18498214e-3, -.00334606e-3});
    expectNear(rowOf(load, 3), {.41496752e-3, -.02402486e-3, -.28327070e-3, -.10767195e-3});
    const RunResults squares = auxLossOf({{"coeff", 0.0}, {"z_loss_coeff", 1e-3}}, backend);
    expectNear(squares.at("y"), {.0059516600});
    expectNear(rowOf(squares, 0), {.27971964e-3, .76035683e-3, .16965854e-3, .03785594e-3});
  }
}

// ---- MoEPermute and MoEUnpermute

TEST(MoEPermute, DropsSlotsAndGivesTheRestToTheLastExpert) {
  const OpSample sample = sampleOf("MoEPermute", {{"num_experts", std::int64_t{3}}, {"align_size", std::int64_t{2}}},
                                   {{DType::F32, {3, 1}}, {DType::I64, {3, 2}}});
  const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Training);
  const NamedTensors data = {{"x", numbers({3, 1}, {1, 2, 3})},
                             {"indices", counts({3, 2}, {2, 0, -1, 0, 0, -1})},
                             {"grad.y", numbers({8, 1}, {1, 2, 4, 8, 16, 32, 64, 128})}};
  for (const auto& backend : backends()) {
    const RunResults results = runPlan(graph, unfused(graph), backend, 1, data);
    EXPECT_EQ(results.at("y"), (std::vector<double>{1, 2, 3, 0, 1, 0, 0, 0}));
    EXPECT_EQ(results.at("row_id_map"), (std::vector<double>{4, 0, -1, 1, 2, -1}));
    EXPECT_EQ(results.at("split_sizes"), (std::vector<double>{4, 0, 4}));
    EXPECT_EQ(results.at("grad.x"), (std::vector<double>{17, 2, 4}));
  }
}

void expectRefusal(const OpSample& sample, const NamedTensors& data, const char* part) {
  const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Training);
  for (const auto& backend : backends()) {
    try {
      (void)runPlan(graph, unfused(graph), backend, 1, data);
      FAIL() << backend->device().id;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(MoEPermute, RefusesAnIndexThatIsNoExpert) {
  expectRefusal(
      sampleOf("MoEPermute", {{"num_experts", std::int64_t{3}}}, {{DType::F32, {2, 1}}, {DType::I64, {2, 2}}}),
      {{"indices", counts({2, 2}, {0, 1, 3, 0})}}, "indices[2] is 3, but there are 3 experts, 0 to 2");
}

TEST(MoEUnpermute, RefusesRowsThatDoNotExistOrHaveTwoTokens) {
  const OpSample sample =
      sampleOf("MoEUnpermute", {}, {{DType::F32, {4, 1}}, {DType::I64, {2, 2}}, {DType::F32, {2, 2}}});
  expectRefusal(sample, {{"row_id_map", counts({2, 2}, {0, 1, 4, 2})}}, "row_id_map[2] is 4, but x has 4 rows");
  expectRefusal(sample, {{"row_id_map", counts({2, 2}, {0, 1, 2, 0})}}, "row_id_map[0] and row_id_map[3] are both 0");
}

TEST(MoEUnpermute, HasTheSameBitsOnAnyNumberOfThreads) {
  const OpSample sample =
      sampleOf("MoEUnpermute", {}, {{DType::F32, {2400, 33}}, {DType::I64, {600, 4}}, {DType::F32, {600, 4}}});
  const Graph graph = sampleGraph(sample, DType::BF16, ExecutionMode::Training);
  const RunResults expected = runPlan(graph, unfused(graph), cpu::makeCpuBackend({.threads = 1}));
  for (const int threads : {2, 5}) {
    const RunResults results = runPlan(graph, unfused(graph), cpu::makeCpuBackend({.threads = threads}));
    for (const char* name : {"y", "grad.x", "grad.probs"}) EXPECT_EQ(results.at(name), expected.at(name)) << name;
  }
}

}  // namespace
}  // namespace fuseline::testing::experts
