// The numerics of whole pipelines, on the reference device.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/numerics_run.h"

#include "core/quant/apply_recipe.h"
#include "core/runtime/bindings.h"
#include "tests/support/pipelines.h"
#include "tests/support/wrapped_backend.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

Result<NumericsReport> numericsOn(std::shared_ptr<Backend> backend, Graph plain, const char* recipe,
                                  const NamedTensors& given = {}) {
  std::vector<Diagnostic> diagnostics;
  const Graph graph = applyRecipe(std::move(plain), *Recipe::create(*findRecipe(recipe)), diagnostics);
  const FusionReport fused = *fuse(graph);
  const NamedTensors bindings = *makeBindings(graph, 1, given);
  return measureNumerics({.backend = std::move(backend),
                          .graph = graph,
                          .fused = fused,
                          .bindings = bindings,
                          .recipe = recipe,
                          .warmup = 1});
}

NumericsReport numericsOf(Graph plain, const char* recipe, const NamedTensors& given = {}) {
  Result<NumericsReport> report = numericsOn(makeReferenceBackend(), std::move(plain), recipe, given);
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

TEST(NumericsRun, QuantizesEveryTensorUnderEveryRecipeThatFits) {
  const NumericsReport report = numericsOf(normAndLinear(DType::BF16), "MXFP8BlockScaling");
  const auto input = std::ranges::find(report.copies, "fc.input@rowwise", &CopyNumerics::name);
  ASSERT_NE(input, report.copies.end());
  std::int64_t counted = input->magnitudes.zeros;
  for (const std::int64_t count : input->magnitudes.counts) counted += count;
  EXPECT_EQ(counted, 128 * 256);
  ASSERT_EQ(input->requantized.size(), 5U);
  for (const Requantized& other : input->requantized) {
    EXPECT_EQ(other.elements, 128 * 256);
    if (other.recipe != "MXFP8BlockScaling") continue;
    EXPECT_EQ(other.losses.meanSquaredError, input->losses.meanSquaredError);
    EXPECT_EQ(other.format, input->format);
  }
  const auto noise = [&](const char* recipe) {
    return std::ranges::find(input->requantized, recipe, &Requantized::recipe)->losses.signalToNoise;
  };
  EXPECT_GT(noise("Float8CurrentScaling"), 2.0 + noise("NVFP4BlockScaling"));
}

/// 2 runs with a history of 1024: the second infinity leaves it 1023 steps later.
TEST(NumericsRun, NamesScalesThatAnInfiniteAmaxFreezes) {
  const Graph graph = normAndLinear(DType::F32);
  EXPECT_TRUE(numericsOf(graph, "DelayedScaling").frozenScales.empty());
  Tensor broken = Tensor::zeros({DType::F32, {128, 256}});
  encode(std::vector{std::numeric_limits<double>::infinity()}, DType::F32, broken.data.data());
  const Graph linearOnly = chain(DType::F32, {128, 256}, {linear(128, "fc")});
  const NumericsReport report = numericsOf(linearOnly, "DelayedScaling", {{"x", broken}});
  ASSERT_EQ(report.frozenScales.size(), 1U);
  EXPECT_EQ(report.frozenScales.front().name, "fc.input");
  EXPECT_EQ(report.frozenScales.front().scale, 1.0F);
  EXPECT_EQ(report.frozenScales.front().steps, 1023);
}

/// Runs, and does not give anything back.
class SilentBackend final : public WrappedBackend {
 public:
  SilentBackend() : WrappedBackend([](const Step&) {}) {}
  void download(std::span<std::byte>, const std::byte*) override { throw std::runtime_error("gpu:0 was lost."); }
};

TEST(NumericsRun, SaysWhyATensorCouldNotBeRead) {
  const auto report = numericsOn(std::make_shared<SilentBackend>(), normAndLinear(DType::BF16), "DelayedScaling");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "gpu:0 was lost.");
  EXPECT_EQ(report.error().kind, ErrorKind::RunFailed);
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

/// An rstd is in float32, but computed from values that were rounded to bf16. Source: the tolerances of
/// TransformerEngine's tests, bf16 where bf16 is involved.
TEST(NumericsRun, JudgesResidualsByTheRoundingOfWhatTheyAreMadeOf) {
  for (const auto& [dtype, expected] : {std::pair(DType::BF16, 1.6e-2), {DType::F16, 1e-3}, {DType::F32, 1.3e-6}}) {
    const NumericsReport report = numericsOf(chain(dtype, {8, 16}, {link("GELU"), link("RMSNorm")}), "None");
    const auto isRstd = [](const ErrorNumerics& error) { return error.name.ends_with("rstd"); };
    const auto rstd = std::ranges::find_if(report.fusionErrors, isRstd);
    ASSERT_NE(rstd, report.fusionErrors.end());
    EXPECT_DOUBLE_EQ(rstd->tolerance, expected);
  }
}

}  // namespace
}  // namespace fuseline
