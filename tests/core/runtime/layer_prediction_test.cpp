// Models with each layer once, and the time of the whole from theirs, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/layer_prediction.h"

#include "core/document/file_format.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

/// in -> Narrow -> three of Wide -> Narrow -> out: blocks of one GELU each.
PipelineDocument stack() {
  return parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 1},
    "blocks": {
      "Narrow": {"inputs": [{"id": "x"}], "ops": [{"id": "act", "op": "GELU"}], "wires": [["x", "act.x"]],
                 "outputs": [{"id": "y", "from": "act.y"}]},
      "Wide": {"inputs": [{"id": "x"}], "ops": [{"id": "act", "op": "GELU"}], "wires": [["x", "act.x"]],
               "outputs": [{"id": "y", "from": "act.y"}]}},
    "pipeline": {"inputs": [{"id": "x", "dtype": "f32", "shape": [4, 8]}],
      "ops": [{"id": "a", "op": "block:Narrow"}, {"id": "b", "op": "block:Wide"}, {"id": "c", "op": "block:Wide"},
              {"id": "d", "op": "block:Wide"}, {"id": "e", "op": "block:Narrow"}, {"id": "end", "op": "GELU"}],
      "wires": [["x", "a.x"], ["a.y", "b.x"], ["b.y", "c.x"], ["c.y", "d.x"], ["d.y", "e.x"], ["e.y", "end.x"]],
      "outputs": [{"id": "y", "from": "end.y"}]}})")
      .document;
}

TEST(LayersOnce, AreTheFirstOfEachBlockInOneChain) {
  const Result<ShortenedModel> model = withLayersOnce(stack());
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_EQ(model->layers.size(), 2U);
  EXPECT_EQ(model->layers[0].layer, "a");
  EXPECT_EQ(model->layers[0].count, 2);
  EXPECT_EQ(model->layers[1].layer, "b");
  EXPECT_EQ(model->layers[1].count, 3);
  const Json pipeline = toJson(model->document)["pipeline"];
  EXPECT_EQ(pipeline["wires"], Json::parse(R"([["x", "a.x"], ["a.y", "b.x"], ["b.y", "end.x"]])"));
}

TEST(LayersOnce, NeedABlockThatIsRepeated) {
  PipelineDocument one = withLayersOnce(stack())->document;
  const Result<ShortenedModel> model = withLayersOnce(one);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::Usage);
}

TEST(LayerPrediction, MultipliesTheTimesOfLayers) {
  RunRecord record;
  VariantRecord& fused = record.variants.emplace_back(VariantRecord{.name = "fused"});
  fused.steps.push_back({.name = "a.act", .ops = {"a.act"}, .samplesNs = {10.0, 20.0, 30.0}});
  fused.steps.push_back({.name = "b.act", .ops = {"b.act", "end"}, .samplesNs = {100.0, 100.0, 100.0}});
  fused.steps.push_back({.name = "end", .ops = {"end"}, .samplesNs = {5.0, 5.0, 5.0}});
  fused.steps.push_back({.name = "view", .ops = {"b.view"}, .samplesNs = {}});
  const std::vector<LayerPrediction> predictions =
      predict(record, {{.layer = "a", .block = "Narrow", .count = 2}, {.layer = "b", .block = "Wide", .count = 3}});
  ASSERT_EQ(predictions.size(), 1U);
  EXPECT_EQ(predictions[0].totalNs(), 2 * 20.0 + 3 * 100.0 + 5.0);
  EXPECT_EQ(predictions[0].total().lowNs, 2 * 15.0 + 3 * 100.0 + 5.0);
  EXPECT_EQ(predictions[0].total().highNs, 2 * 25.0 + 3 * 100.0 + 5.0);
}

}  // namespace
}  // namespace fuseline
