// The numerics of whole pipelines, on the reference device.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/numerics_run.h"

#include "core/quant/apply_recipe.h"
#include "core/runtime/bindings.h"
#include "tests/support/pipelines.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

NumericsReport numericsOf(Graph plain, const char* recipe, const NamedTensors& given = {}) {
  std::vector<Diagnostic> diagnostics;
  const Graph graph = applyRecipe(std::move(plain), *Recipe::create(*findRecipe(recipe)), diagnostics);
  const FusionReport fused = *fuse(graph);
  const NamedTensors bindings = *makeBindings(graph, 1, given);
  Result<NumericsReport> report = measureNumerics({.backend = makeReferenceBackend(),
                                                   .graph = graph,
                                                   .fused = fused,
                                                   .bindings = bindings,
                                                   .recipe = recipe,
                                                   .warmup = 1});
  if (!report) throw std::runtime_error(report.error().message);
  return std::move(*report);
}

Graph normAndLinear(DType dtype) { return chain(dtype, {128, 256}, {link("RMSNorm", "norm"), linear(128, "fc")}); }

ErrorNumerics errorIn(const NumericsReport& report, const std::string& tensor) {
  return *std::ranges::find(report.errors, tensor, &ErrorNumerics::name);
}

TEST(NumericsRun, FindsNoErrorInFloat32WithoutARecipe) {
  const NumericsReport report = numericsOf(normAndLinear(DType::F32), "None");
  EXPECT_TRUE(report.copies.empty());
  ASSERT_FALSE(report.errors.empty());
  for (const ErrorNumerics& error : report.errors) EXPECT_EQ(error.maxAbsolute, 0.0) << error.name;
  EXPECT_FALSE(report.firstNonFinite);
}

/// Half a unit in the last place of bf16 is 2^-9 of a value: nothing that is rounded once is further away.
TEST(NumericsRun, SeesTheRoundingOfBf16) {
  const ErrorNumerics norm = errorIn(numericsOf(normAndLinear(DType::BF16), "None"), "norm:y");
  EXPECT_GT(norm.rmsRelative, 0.0);
  EXPECT_LT(norm.rmsRelative, 0x1p-8);
}

TEST(NumericsRun, OrdersRecipesByTheirBits) {
  const auto error = [](const char* recipe) {
    return errorIn(numericsOf(normAndLinear(DType::BF16), recipe), "y").rmsRelative;
  };
  const double bf16 = error("None");
  const double fp8 = error("MXFP8BlockScaling");
  const double fp4 = error("NVFP4BlockScaling");
  EXPECT_LT(4 * bf16, fp8);
  EXPECT_LT(2 * fp8, fp4);
}

TEST(NumericsRun, FindsWhereANanComesFrom) {
  const Graph graph = chain(DType::F32, {2, 4}, {link("ConstantScale", "scale"), link("GELU", "act")});
  EXPECT_FALSE(numericsOf(graph, "None").firstNonFinite);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor broken = Tensor::fromDoubles({DType::F32, {2, 4}}, std::vector<double>{1, 2, nan, 4, 5, 6, 7, 8});
  const auto given = numericsOf(graph, "None", {{"x", broken}}).firstNonFinite;
  ASSERT_TRUE(given);
  EXPECT_EQ(given->tensor, "x");
  const Graph overflow = chain(DType::F16, {2, 4}, {with(link("ConstantScale", "scale"), "scale", 1e5), link("GELU")});
  const auto made = numericsOf(overflow, "None").firstNonFinite;
  ASSERT_TRUE(made);
  EXPECT_EQ(made->step, "scale");
  EXPECT_EQ(made->phase, "forward");
}

}  // namespace
}  // namespace fuseline
