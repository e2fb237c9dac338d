// Routing, permutation and experts on CUDA kernels: many tokens and experts, ties, refusals, and a whole layer.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/lowering/lowering.h"
#include "core/tensor/tolerance.h"
#include "tests/support/cuda_test_backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/structured_samples.h"
#include "tests/support/trained_chain.h"

#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline::testing::moe {
namespace {

/// Skips where there is no GPU, and this is not the harness.
class CudaExperts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto backend = cudaTestBackend(); !backend) GTEST_SKIP() << backend.error().message;
  }
};

const std::pair<std::string, AttributeValue> kSigmoid("score_function", std::string("sigmoid"));

/// Several blocks of slots, and more experts than a block has threads.
const std::vector<OpSample>& largeSamples() {
  static const std::vector<OpSample> samples = {
      sampleOf("TopKRouter", {{"topk", std::int64_t{8}}, {"use_pre_softmax", true}}, {{DType::F32, {9, 300}}}),
      sampleOf("TopKRouter",
               {{"topk", std::int64_t{8}},
                kSigmoid,
                {"expert_bias", true},
                {"num_groups", std::int64_t{40}},
                {"group_topk", std::int64_t{4}}},
               {{DType::F32, {9, 320}}}),
      sampleOf("MoEPermute", {{"num_experts", std::int64_t{300}}, {"align_size", std::int64_t{4}}},
               {{DType::F32, {700, 8}}, {DType::I64, {700, 3}}}),
      sampleOf("MoEUnpermute", {}, {{DType::F32, {2100, 40}}, {DType::I64, {700, 3}}, {DType::F32, {700, 3}}})};
  return samples;
}

TEST_F(CudaExperts, OfManyTokensAreLikeTheReference) {
  for (const OpSample& sample : largeSamples()) {
    const Graph graph = sampleGraph(sample, DType::BF16, ExecutionMode::Training);
    const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
    const RunResults actual = runPlan(graph, unfused(graph), *cudaTestBackend());
    EXPECT_EQ(firstDifference(actual, expected, toleranceOf(DType::BF16).relative), "") << sample.label;
    for (const char* counts : {"indices", "tokens_per_expert", "row_id_map", "split_sizes"})
      EXPECT_TRUE(!expected.contains(counts) || actual.at(counts) == expected.at(counts)) << counts;
  }
}

TEST_F(CudaExperts, HaveTheSameBitsInEveryRun) {
  for (const OpSample& sample : largeSamples()) {
    const Graph graph = sampleGraph(sample, DType::BF16, ExecutionMode::Training);
    EXPECT_EQ(runPlan(graph, unfused(graph), *cudaTestBackend()), runPlan(graph, unfused(graph), *cudaTestBackend()));
  }
}

Tensor numbers(DType dtype, const Shape& shape, const std::vector<double>& values) {
  return Tensor::fromDoubles({dtype, shape}, values);
}

TEST_F(CudaExperts, ArePreferredForNanAndThenByTheLowerIndex) {
  const Graph graph = sampleGraph(sampleOf("TopKRouter", {{"topk", std::int64_t{3}}}, {{DType::F32, {3, 8}}}),
                                  DType::F32, ExecutionMode::Inference);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kLeast = -std::numeric_limits<double>::infinity();
  const NamedTensors data = {
      {"x", numbers(DType::F32, {3, 8}, {1, 1, 1, 1, 1,      1, 1,      1,      0,      1,      kNan,   3,
                                         2, 0, 0, 0, kLeast, 7, kLeast, kLeast, kLeast, kLeast, kLeast, kLeast})}};
  const RunResults results = runPlan(graph, unfused(graph), *cudaTestBackend(), 1, data);
  EXPECT_EQ(results.at("indices"), (std::vector<double>{0, 1, 2, 2, 3, 4, 1, 0, 2}));
  EXPECT_EQ(results.at("tokens_per_expert"), (std::vector<double>{2, 2, 3, 1, 1, 0, 0, 0}));
}

/// Rows that nobody needs are the last expert's; dropped slots have none.
TEST_F(CudaExperts, GetNoRowsOfDroppedSlots) {
  const OpSample sample = sampleOf("MoEPermute", {{"num_experts", std::int64_t{3}}, {"align_size", std::int64_t{2}}},
                                   {{DType::F32, {3, 1}}, {DType::I64, {3, 2}}});
  const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Training);
  const NamedTensors data = {{"x", numbers(DType::F32, {3, 1}, {1, 2, 3})},
                             {"indices", numbers(DType::I64, {3, 2}, {2, 0, -1, 0, 0, -1})},
                             {"grad.y", numbers(DType::F32, {8, 1}, {1, 2, 4, 8, 16, 32, 64, 128})}};
  const RunResults results = runPlan(graph, unfused(graph), *cudaTestBackend(), 1, data);
  EXPECT_EQ(results.at("y"), (std::vector<double>{1, 2, 3, 0, 1, 0, 0, 0}));
  EXPECT_EQ(results.at("row_id_map"), (std::vector<double>{4, 0, -1, 1, 2, -1}));
  EXPECT_EQ(results.at("split_sizes"), (std::vector<double>{4, 0, 4}));
  EXPECT_EQ(results.at("grad.x"), (std::vector<double>{17, 2, 4}));
}

void expectRefusal(const OpSample& sample, const NamedTensors& data, const char* part) {
  const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Training);
  try {
    (void)runPlan(graph, unfused(graph), *cudaTestBackend(), 1, data);
    FAIL() << "no refusal";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST_F(CudaExperts, AreRefusedWhereTheyDoNotExist) {
  const OpSample permute =
      sampleOf("MoEPermute", {{"num_experts", std::int64_t{3}}}, {{DType::F32, {2, 1}}, {DType::I64, {2, 2}}});
  expectRefusal(permute, {{"indices", numbers(DType::I64, {2, 2}, {0, 1, 3, 0})}},
                "indices[2] is 3, but there are 3 experts, 0 to 2");
  const OpSample unpermute =
      sampleOf("MoEUnpermute", {}, {{DType::F32, {4, 1}}, {DType::I64, {2, 2}}, {DType::F32, {2, 2}}});
  expectRefusal(unpermute, {{"row_id_map", numbers(DType::I64, {2, 2}, {0, 1, 4, 2})}},
                "row_id_map[2] is 4, but x has 4 rows");
  expectRefusal(unpermute, {{"row_id_map", numbers(DType::I64, {2, 2}, {0, 1, 2, 0})}},
                "row_id_map[0] and row_id_map[3] are both 0");
}

/// In float32, so that no token is near the choice of another expert.
Graph wholeLayer() {
  std::string text = findTemplate("qwen3-moe-layer")->text;
  for (std::size_t at = text.find("bf16"); at != std::string::npos; at = text.find("bf16")) text.replace(at, 4, "f32");
  LoweringOptions options{.pass = ExecutionMode::Training};
  options.symbols = {{"S", 24}, {"H", 32}, {"heads", 4}, {"groups", 2}, {"D", 8}, {"E", 6}, {"topk", 2}, {"FE", 16}};
  return lower(parseDocument(text).document, options).graph;
}

/// The sizes of the groups come from the run.
TEST_F(CudaExperts, OfAWholeLayerTrainLikeTheReference) {
  const Graph graph = wholeLayer();
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  ASSERT_TRUE(expected.contains("grad.x"));
  EXPECT_EQ(firstDifferenceInNorm(runPlan(graph, unfused(graph), *cudaTestBackend()), expected, 1e-4), "");
}

/// Each update sends tokens to other experts, so the sizes differ from run to run.
TEST_F(CudaExperts, GetOtherTokensWhenTheRouterIsTrained) {
  const Graph graph = wholeLayer().withOptimizer(AdamW{.lr = 0.02});
  const RunResults expected = trainedResults(graph, makeReferenceBackend(), 3);
  EXPECT_EQ(firstDifferenceInNorm(trainedResults(graph, *cudaTestBackend(), 3), expected, 1e-3), "");
}

}  // namespace
}  // namespace fuseline::testing::moe
