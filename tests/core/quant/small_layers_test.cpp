// Which layers FP8 is predicted to make slower.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/small_layers.h"

#include "core/quant/apply_recipe.h"
#include "tests/support/pipelines.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// Published figures of these two layers (torchao on an H100): 0.80 and 1.39 times as fast as bf16.
TEST(SmallLayers, AreOnTheSideOfTheBorderWhereTheyWereMeasured) {
  const Fp8Estimate slower = estimateFp8(1024, 1024, 2048, true);
  EXPECT_LT(slower.savedUs, slower.quantizeUs);
  const Fp8Estimate faster = estimateFp8(4096, 16384, 8192, true);
  EXPECT_GT(faster.savedUs, faster.quantizeUs);
}

/// By hand: three GEMMs of 2 M N K operations; M K, N K and M N elements, each read in 2 bytes and written twice.
TEST(SmallLayers, EstimatesAreThoseOfTheDataSheet) {
  const Fp8Estimate estimate = estimateFp8(8192, 8192, 16384, true);
  EXPECT_NEAR(estimate.savedUs, 6.0 * 8192 * 8192 * 16384 * (1 / 989e6 - 1 / 1979e6), 1e-6);
  EXPECT_NEAR(estimate.quantizeUs, 4.0 * (2.0 * 8192 * 16384 + 8192.0 * 8192) / 4.8e6, 1e-9);
  EXPECT_NEAR(estimateFp8(8192, 64, 8192, false).quantizeUs, 3.0 * 8192 * 8192 / 4.8e6, 1e-9);
  EXPECT_EQ(estimateFp8(64, 64, 64, true).quantizeUs, 9.0);  // three launches
}

std::optional<Diagnostic> noteOf(const Graph& plain, const char* name) {
  const Recipe recipe = *Recipe::create(*findRecipe(name));
  std::vector<Diagnostic> diagnostics;
  return noteSmallLayers(applyRecipe(plain, recipe, diagnostics), recipe);
}

TEST(SmallLayers, AreNamedWithBothTimes) {
  const Graph graph = chain(DType::BF16, {64, 128}, {linear(256, "a"), linear(128, "b")});
  const auto note = noteOf(graph, "Float8CurrentScaling");
  ASSERT_TRUE(note);
  EXPECT_EQ(note->severity, Severity::Note);
  EXPECT_NE(note->message.find("override them to high precision: a (saves 0.0064 us, costs 9 us), b (saves"),
            std::string::npos)
      << note->message;
}

TEST(SmallLayers, AreNotNamedWithoutFp8OrForOtherGpus) {
  const Graph graph = chain(DType::BF16, {64, 128}, {linear(256)});
  for (const char* recipe : {"None", "MXFP8BlockScaling", "NVFP4BlockScaling"})
    EXPECT_FALSE(noteOf(graph, recipe)) << recipe;
  EXPECT_FALSE(noteOf(chain(DType::BF16, {4096, 128}, {link("GELU")}), "DelayedScaling"));
}

/// It quantizes, and multiplies nothing.
TEST(SmallLayers, DoNotCountAQuantize) {
  EXPECT_FALSE(noteOf(chain(DType::BF16, {64, 128}, {link("Quantize")}), "Float8CurrentScaling"));
}

}  // namespace
}  // namespace fuseline
