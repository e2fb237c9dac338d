// Memory by layer, by hand for two layers of one block, and what changes do to it.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory_forecast.h"

#include "core/document/file_format.h"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

/// Two instances of BasicLinear [64, 64] and GELU, then BasicLinear [32, 64]; x is [16, 64].
PipelineDocument layersOfOneBlock() {
  return parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 1},
    "blocks": {"Layer": {"inputs": [{"id": "x"}],
      "ops": [{"id": "fc", "op": "BasicLinear", "attributes": {"in_features": 64, "out_features": 64}},
              {"id": "act", "op": "GELU"}],
      "wires": [["x", "fc.x"], ["fc.y", "act.x"]], "outputs": [{"id": "y", "from": "act.y"}]}},
    "pipeline": {"inputs": [{"id": "x", "dtype": "bf16", "shape": [16, 64]}],
      "ops": [{"id": "layer0", "op": "block:Layer"}, {"id": "layer1", "op": "block:Layer"},
              {"id": "head", "op": "BasicLinear", "attributes": {"in_features": 64, "out_features": 32}}],
      "wires": [["x", "layer0.x"], ["layer0.y", "layer1.x"], ["layer1.y", "head.x"]],
      "outputs": [{"id": "y", "from": "head.y"}]}})")
      .document;
}

MemoryForecast forecastOf(const PipelineDocument& document, const AnalysisOptions& options = {}) {
  const Analysis analysis = analyze(document, options);
  if (!analysis.isRunnable()) throw std::invalid_argument("the pipeline has errors");
  return memoryForecast(document, options, analysis);
}

const MemoryChange& changeOf(const MemoryForecast& forecast, std::string_view part) {
  const auto found = std::ranges::find_if(
      forecast.changes, [&](const MemoryChange& change) { return change.name.find(part) != std::string::npos; });
  if (found == forecast.changes.end()) throw std::out_of_range(std::string(part));
  return *found;
}

constexpr std::int64_t kWeight = 64 * 64 * 2;  // bytes
constexpr std::int64_t kTensor = 16 * 64 * 2;

// A layer keeps the input of GELU, and its own unless that is the pipeline's; bf16 needs 12 bytes of AdamW for 2.
TEST(MemoryForecast, IsWhatPaperAndPencilSayByLayer) {
  const MemoryForecast forecast = forecastOf(layersOfOneBlock());
  ASSERT_EQ(forecast.layers.size(), 3U);
  const std::int64_t kept[] = {kTensor, 2 * kTensor, kTensor};
  const std::int64_t weights[] = {kWeight, kWeight, kWeight / 2};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(forecast.layers[i].parameters, weights[i]) << i;
    EXPECT_EQ(forecast.layers[i].gradients, weights[i]) << i;
    EXPECT_EQ(forecast.layers[i].kept, kept[i]) << i;
    EXPECT_EQ(forecast.layers[i].optimizer, 6 * weights[i]) << i;
  }
  EXPECT_EQ(forecast.layers[1].layer, "layer1");
  EXPECT_EQ(forecast.changes.front().sum.kept, 4 * kTensor);
}

// The column says the same with and without an optimizer, which alone allocates it, and 64 bytes for the counter.
TEST(MemoryForecast, CountsTheOptimizerOfThePlanAsAllocated) {
  const MemoryForecast without = forecastOf(layersOfOneBlock());
  AnalysisOptions options;
  options.lowering.optimizer = AdamW();
  const MemoryForecast with = forecastOf(layersOfOneBlock(), options);
  const LayerMemory& sum = with.changes.front().sum;
  EXPECT_EQ(sum.optimizer, without.changes.front().sum.optimizer);
  EXPECT_EQ(sum.gradients, without.changes.front().sum.gradients);
  EXPECT_EQ(with.changes.front().allocated, without.changes.front().allocated + sum.optimizer + 64);
}

// Recomputed, a layer keeps its input alone; one at a time has all of it.
TEST(MemoryForecast, SaysWhatChangesWouldDo) {
  const MemoryForecast forecast = forecastOf(layersOfOneBlock());
  const MemoryChange& now = forecast.changes.front();
  const MemoryChange& recomputed = changeOf(forecast, "recomputed in backward");
  EXPECT_TRUE(recomputed.isEstimate);
  EXPECT_EQ(recomputed.sum.kept, kTensor + kTensor + 2 * kTensor);  // head, input of layer1, the larger layer
  EXPECT_EQ(recomputed.allocated, now.allocated + recomputed.sum.kept - now.sum.kept);
  const MemoryChange& offloaded = changeOf(forecast, "cpu_offloading");
  EXPECT_TRUE(offloaded.problem.empty()) << offloaded.problem;
  EXPECT_EQ(offloaded.sum.kept + offloaded.onHost, now.sum.kept);
  EXPECT_FALSE(changeOf(forecast, "recipe DelayedScaling").isEstimate);
}

TEST(MemoryForecast, JoinsEqualNeighborsInOneLine) {
  PipelineDocument document = layersOfOneBlock();
  MemoryForecast forecast = forecastOf(document);
  forecast.layers[0].kept = forecast.layers[1].kept;
  EXPECT_NE(toString(forecast).find("layer0 to layer1, each"), std::string::npos) << toString(forecast);
}

}  // namespace
}  // namespace fuseline::testing
