// The load of experts in records of runs: with indices from outside, from a router, and with sizes of groups.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/experts/expert_load.h"

#include "core/document/file_format.h"
#include "core/runtime/pipeline_run.h"
#include "tests/support/one_backend.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace fuseline {
namespace {

std::string pipeline(const std::string& inputs, const std::string& ops, const std::string& wires,
                     const std::string& output) {
  return R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "symbols": {}, "pipeline": {
    "inputs": [{"id": "x", "dtype": "f32", "shape": [4, 8]})" +
         inputs + R"(], "ops": [)" + ops + R"(], "wires": [)" + wires + R"(], "outputs": [{"id": "y", "from": ")" +
         output + R"("}]}})";
}

constexpr const char* kPermute = R"({"id": "permute", "op": "MoEPermute", "attributes": {"num_experts": 3}})";

std::vector<ExpertLoad> loadsOf(const std::string& text, NamedTensors tensors = {}) {
  PipelineRunOptions options{.tensors = std::move(tensors)};
  options.settings.device = "reference";
  options.settings.warmup = 0;
  options.settings.iterations = 1;
  const auto run =
      PipelineRun::prepare(parseDocument(text), "routing", options, testing::OneBackend(makeReferenceBackend()));
  EXPECT_TRUE(run) << run.error().message;
  return run ? (*run)->measure()->expertLoads : std::vector<ExpertLoad>();
}

TEST(ExpertLoads, CountTheTokensOfEachExpert) {
  const std::string text = pipeline(R"(, {"id": "indices", "dtype": "i64", "shape": [4, 2]})", kPermute,
                                    R"(["x", "permute.x"], ["indices", "permute.indices"])", "permute.y");
  const Tensor indices = Tensor::fromDoubles({DType::I64, {4, 2}}, std::vector<double>{0, 1, 0, 2, 0, 1, 0, -1});
  const std::vector<ExpertLoad> loads = loadsOf(text, {{"indices", indices}});
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads[0], (ExpertLoad{.op = "permute", .owner = "permute", .tokens = {4, 2, 1}}));
  EXPECT_EQ(expertLoadsText(loads), "permute: 1.71x the mean load (most 4, mean 2.3 tokens, 0 of 3 experts idle)");
}

/// Later steps of the same run do not overwrite them.
TEST(ExpertLoads, AreThoseThatARouterChose) {
  const std::string text = pipeline(
      "",
      R"({"id": "route", "op": "TopKRouter", "attributes": {"topk": 2}}, )"
      R"({"id": "permute", "op": "MoEPermute", "attributes": {"num_experts": 8}}, )"
      R"({"id": "unpermute", "op": "MoEUnpermute"}, {"id": "act", "op": "GELU"}, {"id": "norm", "op": "RMSNorm",
          "attributes": {"normalized_shape": [8]}})",
      R"(["x", "route.x"], ["x", "permute.x"], ["route.indices", "permute.indices"], ["permute.y", "unpermute.x"],
         ["permute.row_id_map", "unpermute.row_id_map"], ["route.y", "unpermute.probs"], ["unpermute.y", "act.x"],
         ["act.y", "norm.x"])",
      "norm.y");
  for (const std::vector<double>& x : {std::vector<double>(32, 0.0), std::vector<double>{}}) {
    NamedTensors tensors;
    if (!x.empty()) tensors.emplace_back("x", Tensor::fromDoubles({DType::F32, {4, 8}}, x));
    const std::vector<ExpertLoad> loads = loadsOf(text, tensors);
    ASSERT_EQ(loads.size(), 1u);
    EXPECT_EQ(std::accumulate(loads[0].tokens.begin(), loads[0].tokens.end(), std::int64_t{0}), 8);
    if (!x.empty()) {  // ties go to the lower index
      EXPECT_EQ(loads[0].tokens, (std::vector<std::int64_t>{4, 4, 0, 0, 0, 0, 0, 0}));
    }
  }
}

TEST(ExpertLoads, AreTheSizesOfGroupsThatComeFromOutside) {
  const std::string text = pipeline(
      R"(, {"id": "sizes", "dtype": "i64", "shape": [2]})",
      R"({"id": "fc1", "op": "GroupedLinear", "attributes": {"num_groups": 2, "in_features": 8, "out_features": 8}}, )"
      R"({"id": "fc2", "op": "GroupedLinear", "attributes": {"num_groups": 2, "in_features": 8, "out_features": 8}})",
      R"(["x", "fc1.x"], ["sizes", "fc1.split_sizes"], ["fc1.y", "fc2.x"], ["sizes", "fc2.split_sizes"])", "fc2.y");
  const Tensor sizes = Tensor::fromDoubles({DType::I64, {2}}, std::vector<double>{4, 0});
  const std::vector<ExpertLoad> loads = loadsOf(text, {{"sizes", sizes}});
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads[0].tokens, (std::vector<std::int64_t>{4, 0}));
  EXPECT_EQ(loads[0].factor(), 2.0);
}

TEST(ExpertLoads, OfSeveralRoutingsTellTheMostUnevenAndTheRange) {
  const std::vector<ExpertLoad> loads = {{.op = "a", .tokens = {2, 2}}, {.op = "b", .tokens = {3, 1}}};
  EXPECT_EQ(expertLoadsText(loads),
            "b: 1.50x the mean load (most 3, mean 2.0 tokens, 0 of 2 experts idle); 1.00x to 1.50x in 2 routings");
  EXPECT_EQ(expertLoadsText({}), "");
  EXPECT_EQ((ExpertLoad{.tokens = {0, 0}}).factor(), 0.0);
}

}  // namespace
}  // namespace fuseline
