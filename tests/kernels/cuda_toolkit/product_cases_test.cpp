// The GEMMs for the comparison of algorithms match the backend's requests to the library.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/cuda/product_cases.h"

#include "kernels/cuda/gemm/gemm_epilogue.h"
#include "kernels/cuda/gemm/gemm_sample.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

GemmProblem named(const std::string& name) {
  const std::vector<ProductCase> cases = productCases();
  const auto found = std::ranges::find(cases, name, &ProductCase::name);
  if (found == cases.end()) throw std::invalid_argument(name);
  return found->problem;
}

TEST(ProductCases, HaveNamesOfTheirOwnAndEpiloguesThatTheLibraryMayHave) {
  std::set<std::string> names;
  for (const ProductCase& each : productCases()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_TRUE(fitsEpilogue(each.problem)) << each.name;
    EXPECT_EQ(each.problem.aCodes.has_value(), each.problem.bCodes.has_value()) << each.name;
  }
}

/// Codes are multiplied with contracted elements side by side: a as it is read, b as its transpose.
TEST(ProductCases, OfCodesStandAsHopperReadsThem) {
  for (const ProductCase& each : productCases()) {
    if (!each.problem.aCodes) continue;
    EXPECT_EQ(each.problem.a, Storage2d::AsRead) << each.name;
    EXPECT_EQ(each.problem.b, Storage2d::Transposed) << each.name;
  }
  EXPECT_EQ(named("bf16 8B 2048 up wgrad").a, Storage2d::Transposed);
  EXPECT_EQ(named("bf16 8B 2048 up dgrad").b, Storage2d::AsRead);
}

TEST(ProductCases, HaveTheExtentsOfTheirLayers) {
  const auto extents = [](const GemmProblem& problem) { return std::vector{problem.m, problem.n, problem.k}; };
  EXPECT_EQ(extents(named("fp8 8B 2048 up forward")), (std::vector<std::int64_t>{2048, 28672, 4096}));
  EXPECT_EQ(extents(named("fp8 8B 2048 up dgrad")), (std::vector<std::int64_t>{2048, 4096, 28672}));
  EXPECT_EQ(extents(named("fp8 8B 2048 up wgrad")), (std::vector<std::int64_t>{28672, 4096, 2048}));
  EXPECT_EQ(extents(named("bf16 8B 16 down forward")), (std::vector<std::int64_t>{16, 4096, 14336}));
  EXPECT_EQ(extents(named("bf16 expert 1024 up wgrad")), (std::vector<std::int64_t>{2816, 2048, 1024}));
  EXPECT_EQ(extents(named("bf16 1.3B 2048 down dgrad + dgelu")), (std::vector<std::int64_t>{2048, 8192, 2048}));
}

/// OCP MX v1.0: a scale for every 32 elements of both factors, along the contracted dimension.
TEST(ProductCases, ScaleBlocksOfMxfp8AlikeInEveryPass) {
  for (const char* pass : {"forward", "dgrad", "wgrad"}) {
    const GemmProblem problem = named(std::string("mxfp8 8B 2048 down ") + pass);
    EXPECT_EQ(problem.aCodes, (FactorCodes{.scaling = Scaling::Mx1x32})) << pass;
    EXPECT_EQ(problem.bCodes, problem.aCodes) << pass;
  }
}

TEST(ProductCases, HaveAPairThatDiffersInHowSumsAreAdded) {
  GemmProblem split = named("fp8 8B 2048 up forward, split sums");
  EXPECT_FALSE(split.isFastAccumulated);
  split.isFastAccumulated = true;
  EXPECT_EQ(split, named("fp8 8B 2048 up forward"));
}

TEST(ProductCases, ScaleBlocksOfWeightsInBothDirections) {
  const GemmProblem forward = named("fp8_block 8B 2048 up forward");
  EXPECT_EQ(forward.aCodes->scaling, Scaling::Block1x128);
  EXPECT_EQ(forward.bCodes->scaling, Scaling::Block128x128);
  EXPECT_EQ(named("fp8_block 8B 2048 up wgrad").bCodes->scaling, Scaling::Block1x128);
  EXPECT_FALSE(forward.isFastAccumulated);
  EXPECT_GT(sampleOf(named("fp8_block 1.3B 2048 up forward")).aScales.sizeBytes, 0u);
}

TEST(ProductCases, RoundFactorsToTf32OnlyWhereTheySaySo) {
  for (const ProductCase& each : productCases())
    EXPECT_EQ(each.problem.isTf32, each.name.starts_with("tf32")) << each.name;
}

}  // namespace
}  // namespace fuseline::cuda
