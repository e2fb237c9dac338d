// Embedding, TiedLinear and CrossEntropy on the CPU: values of PyTorch, order of sums, and data that they refuse.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/fusion/fuser.h"
#include "core/lowering/lowering.h"
#include "core/plan/plan.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/compare.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"
#include "tests/support/structured_samples.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr const char* kHeadRule = "ForwardBackwardLinearCrossEntropy";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::shared_ptr<Backend> onThreads(int threads) { return cpu::makeCpuBackend({.threads = threads}); }

std::vector<std::shared_ptr<Backend>> backends() { return {makeReferenceBackend(), onThreads(1), onThreads(3)}; }

void expectNear(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance = 2e-6) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

Tensor numbers(const Shape& shape, const std::vector<double>& values) {
  return Tensor::fromDoubles({DType::F32, shape}, values);
}

Tensor counts(const Shape& shape, const std::vector<double>& values) {
  return Tensor::fromDoubles({DType::I64, shape}, values);
}

// ---- CrossEntropy

constexpr std::int64_t kClasses = 6;

/// Four rows, of which the third is ignored.
NamedTensors lossData() {
  return {{"x", numbers({4, kClasses},
                        {2, -1, .5, 0, 1, -.5, .1, .2, .3, .4, .5, .6, -3, 4, 1, 0, 2, -1, 1, 1, 1, 1, 1, 1})},
          {"target", counts({4}, {0, 5, -100, 2})}};
}

Graph lossGraph(const AttributeValues& given) {
  return sampleGraph(sampleOf("CrossEntropy", given, {{DType::F32, {4, kClasses}}, {DType::I64, {4}}}), DType::F32,
                     ExecutionMode::Training);
}

void expectLoss(const AttributeValues& given, double loss, const std::vector<double>& firstRow) {
  const Graph graph = lossGraph(given);
  for (const auto& backend : backends()) {
    const RunResults results = runPlan(graph, unfused(graph), backend, 1, lossData());
    expectNear(results.at("y"), {loss});
    const std::vector<double>& dx = results.at("grad.x");
    expectNear({dx.begin(), dx.begin() + kClasses}, firstRow);
    for (std::int64_t i = 2 * kClasses; i < 3 * kClasses; ++i) EXPECT_EQ(dx[static_cast<std::size_t>(i)], 0.0);
  }
}

/// Values of torch.nn.functional.cross_entropy and its autograd in float64.
TEST(CrossEntropy, IsThatOfPyTorch) {
  expectLoss({}, 1.3225583206, {-.15394990, .00893098, .04002585, .02427691, .06599148, .01472469});
}

TEST(CrossEntropy, SmoothsLabelsAndAddsTheSquareOfTheLogSumExp) {
  expectLoss({{"label_smoothing", 0.1}, {"lse_square_scale", 0.01}}, 1.4508003352,
             {-.11677380, .00384333, .03656735, .01999328, .06389337, .00994059});
}

TEST(CrossEntropy, GivesTheLossOfEachRow) {
  const Graph graph = lossGraph({{"reduction", std::string("none")}});
  for (const auto& backend : backends())
    expectNear(runPlan(graph, unfused(graph), backend, 1, lossData()).at("y"), {.61961740, 1.55629809, 0, 1.79175947});
}

/// PyTorch's mean of no rows is NaN, TransformerEngine's is 0.
TEST(CrossEntropy, OfIgnoredRowsOnlyIsZeroAndReadsNothing) {
  const Graph graph = lossGraph({});
  NamedTensors data = lossData();
  data[0].second = numbers({4, kClasses}, std::vector<double>(4 * kClasses, kInfinity));
  data[1].second = counts({4}, {-100, -100, -100, -100});
  for (const auto& backend : backends()) {
    const RunResults results = runPlan(graph, unfused(graph), backend, 1, data);
    EXPECT_EQ(results.at("y"), std::vector<double>{0.0});
    EXPECT_EQ(results.at("grad.x"), std::vector<double>(4 * kClasses, 0.0));
  }
}

TEST(CrossEntropy, OfMaskedClassesIsFinite) {
  const Graph graph = lossGraph({});
  NamedTensors data = lossData();
  data[0].second = numbers({4, kClasses}, {0, -kInfinity, 0, -kInfinity, 0, 0, 0, 0, 0, 0, 0, 0,  //
                                           0, 0,          0, 0,          0, 0, 0, 0, 0, 0, 0, 0});
  for (const auto& backend : backends()) {
    const RunResults results = runPlan(graph, unfused(graph), backend, 1, data);
    expectNear(results.at("y"), {(std::log(4.0) + 2.0 * std::log(6.0)) / 3.0});
    EXPECT_EQ(results.at("grad.x")[1], 0.0);
  }
}

TEST(CrossEntropy, RefusesATargetThatIsNoClass) {
  const Graph graph = lossGraph({});
  NamedTensors data = lossData();
  data[1].second = counts({4}, {0, 6, -100, 2});
  for (const auto& backend : backends()) {
    try {
      (void)runPlan(graph, unfused(graph), backend, 1, data);
      FAIL() << backend->device().id;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find("target[1] is 6, but there are 6 classes, 0 to 5"), std::string::npos)
          << error.what();
    }
  }
}

// ---- Embedding

Graph embeddingGraph(const AttributeValues& more, const Shape& ids) {
  AttributeValues given = {{"num_embeddings", std::int64_t{5}}, {"embedding_dim", std::int64_t{2}}};
  given.insert(given.end(), more.begin(), more.end());
  return sampleGraph(sampleOf("Embedding", given, {{DType::I64, ids}}), DType::F32, ExecutionMode::Training);
}

TEST(Embedding, AddsTheGradientsOfARowButForPadding) {
  const Graph graph = embeddingGraph({{"padding_idx", std::int64_t{3}}}, {4});
  const NamedTensors data = {{"x", counts({4}, {1, 3, 1, 0})}, {"grad.y", numbers({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}};
  for (const auto& backend : backends())
    EXPECT_EQ(runPlan(graph, unfused(graph), backend, 1, data).at("grad.op.weight"),
              (std::vector<double>{7, 8, 6, 8, 0, 0, 0, 0, 0, 0}));
}

/// In bf16 a sum of 256 takes no more ones.
TEST(Embedding, SumsInFloat32) {
  OpSample sample = sampleOf(
      "Embedding",
      {{"num_embeddings", std::int64_t{1}}, {"embedding_dim", std::int64_t{1}}, {"dtype", std::string("bf16")}},
      {{DType::I64, {1024}}});
  const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Training);
  const NamedTensors data = {{"x", counts({1024}, std::vector<double>(1024, 0.0))},
                             {"grad.y", Tensor::fromDoubles({DType::BF16, {1024, 1}}, std::vector<double>(1024, 1.0))}};
  for (const auto& backend : backends())
    EXPECT_EQ(runPlan(graph, unfused(graph), backend, 1, data).at("grad.op.weight"), std::vector<double>{1024.0});
}

TEST(Embedding, HasTheSameBitsOnAnyNumberOfThreads) {
  const OpSample sample = sampleOf(
      "Embedding", {{"num_embeddings", std::int64_t{50}}, {"embedding_dim", std::int64_t{33}}}, {{DType::I64, {3000}}});
  const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Training);
  const RunResults expected = runPlan(graph, unfused(graph), onThreads(1));
  for (const int threads : {2, 3, 7})
    EXPECT_EQ(runPlan(graph, unfused(graph), onThreads(threads)).at("grad.op.weight"), expected.at("grad.op.weight"));
}

TEST(Embedding, RefusesANumberThatIsNoRow) {
  const Graph graph = embeddingGraph({}, {3});
  for (const double bad : {5.0, -1.0})
    for (const auto& backend : backends()) {
      try {
        (void)runPlan(graph, unfused(graph), backend, 1, {{"x", counts({3}, {0, bad, 1})}});
        FAIL() << backend->device().id;
      } catch (const std::exception& error) {
        EXPECT_NE(std::string(error.what()).find("x[1] is"), std::string::npos) << error.what();
      }
    }
}

Graph graphOf(const char* text) { return lower(parseDocument(text).document, {.pass = ExecutionMode::Training}).graph; }

/// Some rows at a time, with a rest, and a vocabulary that leaves room for few rows.
TEST(LinearCrossEntropy, OfManyRowsIsLikeTheReference) {
  const Link loss = with(link("CrossEntropy"), "label_smoothing", 0.1);
  for (const DType dtype : kFloatTypes)
    for (const std::vector<Link>& links : {std::vector{linear(30000), loss}, std::vector{link("TiedLinear"), loss}}) {
      const Graph graph = chain(dtype, {links.front().operation == "TiedLinear" ? 4001 : 75, 8}, links);
      const FusionReport report = *fuse(graph, {.switches = {.with = {kHeadRule}}});
      ASSERT_EQ(report.forward.size(), 1U);
      EXPECT_EQ(
          firstDifference(runPlan(graph, report, onThreads(2)), runPlan(graph, unfused(graph), makeReferenceBackend()),
                          2 * toleranceOf(dtype).relative),
          "")
          << dtypeName(dtype);
    }
}

TEST(LinearCrossEntropy, StoresNoLogits) {
  const Graph graph = chain(DType::F32, {4096, 8}, {linear(512), link("CrossEntropy")});
  const FusionReport report = *fuse(graph, {.switches = {.with = {kHeadRule}}});
  EXPECT_LE(makePlan(graph, report).peakBytes(), makePlan(graph, unfused(graph)).peakBytes() - 2 * 4096 * 512 * 4);
}

/// Shared with a TiedLinear, the table is no copy: its output is the parameter.
TEST(Embedding, SharesItsTableWithoutACopy) {
  const Graph graph = graphOf(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline":
    {"inputs": [{"id": "ids", "dtype": "i64", "shape": [3]},
    {"id": "labels", "dtype": "i64", "shape": [3]}],
    "ops": [{"id": "embed", "op": "Embedding", "attributes": {"num_embeddings": 4, "embedding_dim": 2,
                                                               "shares_weight": true}},
            {"id": "scale", "op": "ConstantScale", "attributes": {"scale": 1.5}},
            {"id": "head", "op": "TiedLinear", "attributes": {}},
            {"id": "loss", "op": "CrossEntropy", "attributes": {}}],
    "wires": [["ids", "embed.x"], ["embed.y", "scale.x"], ["scale.y", "head.x"], ["embed.weight", "head.weight"],
              ["head.y", "loss.x"], ["labels", "loss.target"]],
    "outputs": [{"id": "y", "from": "loss.y"}]}})");
  const Plan plan = makePlan(graph, unfused(graph));
  const int table = plan.findTensor("embed:weight");
  ASSERT_GE(table, 0);
  EXPECT_EQ(plan.tensors[static_cast<std::size_t>(table)].storage,
            plan.tensors[static_cast<std::size_t>(plan.findTensor("embed.weight"))].storage);
  const NamedTensors data = {{"ids", counts({3}, {3, 1, 3})},
                             {"labels", counts({3}, {3, -100, 1})},
                             {"embed.weight", numbers({4, 2}, {.5, 1, -1, .25, .75, -.5, 0, 1.5})}};
  // Values of PyTorch's autograd in float64.
  for (const auto& backend : backends()) {
    const RunResults results = runPlan(graph, unfused(graph), backend, 1, data);
    expectNear(results.at("y"), {1.7397292849});
    expectNear(results.at("grad.embed.weight"), {0, .52332684, 0, -1.02819427, 0, .01790726, .86885876, 1.14547009});
  }
}

}  // namespace
}  // namespace fuseline::testing
