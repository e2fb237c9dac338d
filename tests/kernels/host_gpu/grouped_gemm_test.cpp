// GEMMs of all groups in one launch, where the library has them: their tables, and when they are not used.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/machine/discovery.h"
#include "tests/support/compare.h"
#include "tests/support/host_gpu/host_gpu.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// With GEMMs of bf16 on Hopper.
constexpr std::size_t kGrouping = 130400;

struct Experts {
  std::vector<double> sizes = {16, 0, 8, 40};
  DType dtype = DType::BF16;
  std::int64_t inFeatures = 24;
  std::int64_t outFeatures = 32;
  bool hasBias = false;
  bool isScaled = false;
  bool isSingle = false;
  bool isAccumulated = false;
  ExecutionMode pass = ExecutionMode::Training;
  std::string recipe;
};

struct Counted {
  int grouped = 0;
  std::string difference;
};

/// Runs twice, so that the second run is recorded.
Counted run(const Experts& experts, std::size_t version) {
  const auto numGroups = static_cast<std::int64_t>(experts.sizes.size());
  Link layer =
      with(with(link("GroupedLinear", "experts"), "out_features", experts.outFeatures), "num_groups", numGroups);
  layer.attributes.set("bias", experts.hasBias);
  layer.attributes.set("scale_bias", experts.isScaled);
  layer.attributes.set("single_grouped_weight", experts.isSingle);
  layer.attributes.set("accumulate_into_main_grad", experts.isAccumulated);
  double rows = 0;
  for (const double size : experts.sizes) rows += size;
  const Graph graph = chain(experts.dtype, {static_cast<std::int64_t>(rows), experts.inFeatures}, {layer},
                            {.pass = experts.pass, .recipe = experts.recipe, .recipeFields = {}});
  const NamedTensors given = {{"experts_split_sizes", Tensor::fromDoubles({DType::I64, {numGroups}}, experts.sizes)}};
  const std::size_t before = host_gpu::setCublasLtVersion(version);
  const std::shared_ptr<Backend> backend = *cuda::makeCudaBackend(0, cuda::discoverDevices().front().info);
  const int groupedBefore = host_gpu::numGroupedGemms();
  const RunResults actual = runPlan(graph, unfused(graph), backend, 1, given);
  host_gpu::setCublasLtVersion(before);
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend(), 1, given);
  return {.grouped = host_gpu::numGroupedGemms() - groupedBefore,
          .difference = experts.recipe.empty()
                            ? firstDifference(actual, expected, toleranceOf(experts.dtype).relative)
                            : firstDifferenceInNorm(actual, expected, toleranceOf(experts.dtype).relative)};
}

/// cuBLASLt has none on 12.x.
class GroupedGemmOnHost : public ::testing::Test {
 protected:
  void SetUp() override {
    const int major = host_gpu::capability().major;
    if (major < 9 || major > 11) GTEST_SKIP() << "cuBLASLt groups GEMMs on 9.x to 11.x.";
  }

  static void expectGrouped(const Experts& experts, int count, const std::string& what) {
    const Counted counted = run(experts, kGrouping);
    EXPECT_EQ(counted.difference, "") << what;
    EXPECT_EQ(counted.grouped, count) << what;
  }
};

TEST_F(GroupedGemmOnHost, IsOneLaunchForwardAndOneForEachGradient) {
  expectGrouped({.pass = ExecutionMode::Inference}, 1, "inference");
  expectGrouped({}, 3, "training");
  expectGrouped({.dtype = DType::F16}, 3, "float16");
}

TEST_F(GroupedGemmOnHost, TakesEveryFormOfTheWeights) {
  expectGrouped({.isSingle = true}, 3, "one tensor of all weights");
  expectGrouped({.isAccumulated = true}, 3, "added to buffers");
  expectGrouped({.sizes = {0, 64, 0}, .isAccumulated = true}, 3, "groups without rows");
}

/// A scale for each group from 13.3 on where layouts are free, and from 13.5 on Hopper, which then has scales of
/// blocks, too.
TEST_F(GroupedGemmOnHost, MultipliesEncodedValues) {
  const bool isHopper = host_gpu::capability().major == 9;
  const auto grouped = [](const std::string& recipe, std::size_t version) {
    const Experts experts{.sizes = {128, 0, 256}, .inFeatures = 128, .outFeatures = 128, .recipe = recipe};
    const Counted counted = run(experts, version);
    EXPECT_EQ(counted.difference, "") << recipe << " " << version;
    return counted.grouped;
  };
  EXPECT_EQ(grouped("DelayedScaling", 130500), 3);
  EXPECT_EQ(grouped("Float8CurrentScaling", 130500), 3);
  EXPECT_EQ(grouped("DelayedScaling", 130400), isHopper ? 0 : 3);
  if (!isHopper) return;
  EXPECT_EQ(grouped("Float8BlockScaling", 130500), 3);
  EXPECT_EQ(grouped("Float8BlockScaling", 130300), 0);
}

/// The sums are float32, and the bias is added by a pass of its own.
TEST_F(GroupedGemmOnHost, LeavesAScaledBiasToThePassThatFollows) {
  expectGrouped({.hasBias = true, .isScaled = true}, 3, "scaled bias");
}

TEST_F(GroupedGemmOnHost, IsNotUsedWhereItDoesNotFit) {
  expectGrouped({.hasBias = true}, 2, "the epilogue of a bias");  // the gradients have none
  expectGrouped({.dtype = DType::F32}, 0, "float32");
  expectGrouped({.inFeatures = 20}, 0, "rows at multiples of 8 bytes");
  EXPECT_EQ(run({}, 130100).grouped, 0);
  EXPECT_EQ(run({}, 130200).grouped, 0);
}

/// Groups without rows are left out: of four, three remain.
TEST_F(GroupedGemmOnHost, IsNotUsedForFewerGroupsThanTheLibraryTakes) {
  const int before = host_gpu::setFewestGroups(4);
  const Counted some = run({}, kGrouping);
  const Counted all = run({.sizes = {16, 8, 8, 40}}, kGrouping);
  host_gpu::setFewestGroups(before);
  EXPECT_EQ(some.difference + all.difference, "");
  EXPECT_EQ(some.grouped, 0);
  EXPECT_EQ(all.grouped, 3);
}

/// More words than one launch carries.
TEST_F(GroupedGemmOnHost, HasTablesOfAnyNumberOfGroups) {
  std::vector<double> sizes;
  for (int group = 0; group < 131; ++group) sizes.push_back(group % 3);
  expectGrouped({.sizes = sizes}, 3, "131 groups");
}

}  // namespace
}  // namespace fuseline
