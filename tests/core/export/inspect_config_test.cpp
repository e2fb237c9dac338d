// Configurations of nvidia-dlfw-inspect: names in YAML and in patterns, and the sections for recipes and runs.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/exporter.h"
#include "core/export/inspect/inspected_layers.h"
#include "core/export/inspect/yaml_text.h"
#include "core/export/pipeline_exporter.h"

#include "core/document/file_format.h"
#include "tests/support/text.h"

#include <cmath>
#include <regex>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using testing::has;

using ::testing::Test;

// Source: YAML 1.2.2, 7.3.1 and 7.3.2.
TEST(YamlText, QuotesOnceWhereItCanAndEscapesWhereItMust) {
  EXPECT_EQ(yamlText("^fc\\.1$"), "'^fc\\.1$'");
  EXPECT_EQ(yamlText("it's: #1"), "'it''s: #1'");
  EXPECT_EQ(yamlText("é中"), "'é中'");
  EXPECT_EQ(yamlText("a\x01\"\\"), R"("a\x01\"\\")");
  EXPECT_EQ(yamlText("\xE2\x80\xA8"), R"("\u2028")") << "a line break of YAML 1.1";
  EXPECT_EQ(yamlText("\xC2\x85"), R"("\x85")");
  EXPECT_EQ(yamlText("a\xFF"), R"("a\ufffd")") << "no UTF-8";
  EXPECT_EQ(yamlText(""), "''");
}

TEST(YamlText, CommentsStayOnTheirLine) { EXPECT_EQ(yamlComment("a\nb\xE2\x80\xA9 c: é"), "a?b? c: é"); }

/// The tool's search for a name.
bool finds(const std::string& pattern, const std::string& name) {
  return std::regex_search(name, std::regex("^" + pattern + "$"));
}

/// Ids with all permitted bytes, often with those that have a meaning in patterns.
rc::Gen<std::string> anId() {
  const auto special = rc::gen::elementOf(std::string(R"(\^$*+?{}[]|()-#'%&)"));
  const auto other = rc::gen::suchThat(rc::gen::character<char>(), [](char c) {
    return c != '\0' && std::string_view("./:@ \t\r\n\v\f\"").find(c) == std::string_view::npos;
  });
  return rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::oneOf(special, other)));
}

RC_GTEST_PROP(RegexText, FindsTheNameAndNoOther, ()) {
  const std::string id = *anId(), other = *anId();
  const std::string pattern = regexText(id);
  RC_ASSERT(finds(pattern, id));
  RC_ASSERT(!finds(pattern, id + "x"));
  RC_ASSERT(!finds(pattern, "x" + id));
  RC_ASSERT(finds(pattern, other) == (id == other));
}

std::string sample(const std::string& ops, const std::string& wires, const std::string& last,
                   const std::string& recipe) {
  return fmt::format(R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}},
    "pipeline": {{"inputs": [{{"id": "x", "dtype": "bf16", "shape": [64, 32]}}], "ops": [{}], "wires": [{}],
    "outputs": [{{"id": "y", "from": "{}.y"}}]}}, "recipe": {}}})",
                     ops, wires, last, recipe);
}

/// fc1 and fc2, with 32 features.
std::string twoLinears(const std::string& recipe) {
  const auto linear = [](const char* id) {
    return fmt::format(R"({{"id": "{}", "op": "Linear", "attributes": {{"in_features": 32, "out_features": 32}}}})",
                       id);
  };
  return sample(linear("fc1") + "," + linear("fc2"), R"(["x", "fc1.x"], ["fc1.y", "fc2.x"])", "fc2", recipe);
}

std::string mxfp8(const std::string& overrides) {
  return fmt::format(R"({{"name": "MXFP8BlockScaling", "overrides": [{}]}})", overrides);
}

Result<PipelineText> exportOf(const std::string& text, ExecutionMode pass = ExecutionMode::Training) {
  const LoadedDocument loaded = parseDocument(text);
  const AnalysisOptions options{.lowering = {.pass = pass}};
  const Analysis analysis = analyze(loaded.document, options);
  if (!analysis.isRunnable()) throw std::invalid_argument(text);
  return findPipelineExporter("dlfw-inspect")
      ->write({.name = "mlp", .document = loaded.document, .options = options, .analysis = analysis});
}

std::string configOf(const std::string& text, ExecutionMode pass = ExecutionMode::Training) {
  const Result<PipelineText> config = exportOf(text, pass);
  return config ? config->text : config.error().message;
}

TEST(InspectConfig, LogsWhatTheRecipeQuantizes) {
  const std::string text = configOf(twoLinears(mxfp8("")));
  EXPECT_TRUE(has(text,
                  "quantized_layers:\n  enabled: True\n  layers:\n    layer_name_regex_pattern: '^(fc1|fc2)$'\n"
                  "  transformer_engine:\n"))
      << text;
  EXPECT_TRUE(has(text,
                  "    LogFp8TensorStats:\n      enabled: True\n      tensors: [activation, weight, gradient]\n"
                  "      stats: [underflows%, scale_inv_min, scale_inv_max, mse]\n"))
      << text;
  EXPECT_FALSE(has(text, "    LogTensorStats:"));
  EXPECT_FALSE(has(text, "    DisableQuantization"));
}

TEST(InspectConfig, StatisticsFollowTheRecipe) {
  EXPECT_TRUE(has(configOf(twoLinears("null")),
                  "    LogTensorStats:\n      enabled: True\n      tensors: [activation, "
                  "weight, gradient]\n"));
  EXPECT_TRUE(has(configOf(twoLinears(R"({"name": "NVFP4BlockScaling"})")),
                  "    LogNvfp4TensorStats:\n      enabled: True\n      tensors: [activation, weight, gradient]\n      "
                  "stats: [underflows%, mse]\n"));
  EXPECT_TRUE(has(configOf(twoLinears(R"({"name": "DelayedScaling"})")), "fp8_delayed_scaling_overflows%"));
  EXPECT_FALSE(has(configOf(twoLinears(R"({"name": "Float8CurrentScaling"})")), "overflows%, scale"));
}

TEST(InspectConfig, HasNoGradientsOfAForwardPass) {
  const std::string text = configOf(twoLinears(mxfp8("")), ExecutionMode::Inference);
  EXPECT_TRUE(has(text, "tensors: [activation, weight]\n")) << text;
  EXPECT_FALSE(has(text, "gradient]"));
}

// Weight and gradient have readers in high precision, so their statistics are those of plain tensors.
TEST(InspectConfig, AnOverrideKeepsAGemmInHighPrecision) {
  const std::string text = configOf(twoLinears(mxfp8(R"({"op": "fc2", "gemm": "dgrad", "format": "high_precision"})")));
  EXPECT_TRUE(has(text, "layer_name_regex_pattern: '^fc1$'")) << text;
  EXPECT_TRUE(has(text, "high_precision_dgrad:\n  enabled: True\n  layers:\n    layer_name_regex_pattern: '^fc2$'"))
      << text;
  EXPECT_TRUE(has(text, "    DisableQuantizationGEMM:\n      enabled: True\n      gemms: [dgrad]\n")) << text;
  EXPECT_TRUE(has(text, "      tensors: [activation]\n      stats: [underflows%")) << text;
  EXPECT_TRUE(has(text, "      tensors: [weight, gradient]\n      stats: [cur_amax")) << text;
}

// Training has the other GEMMs, too.
TEST(InspectConfig, OverridesOfBackwardAreThereInAForwardPass) {
  const auto forward = [](const char* gemm) {
    return configOf(twoLinears(mxfp8(fmt::format(R"({{"gemm": "{}", "format": "high_precision"}})", gemm))),
                    ExecutionMode::Inference);
  };
  EXPECT_TRUE(has(forward("fprop"), "      gemms: [fprop]\n")) << forward("fprop");
  EXPECT_TRUE(has(forward("wgrad"), "      gemms: [wgrad]\n")) << forward("wgrad");
  EXPECT_TRUE(has(forward("wgrad"), "      tensors: [weight]\n      stats: [underflows%")) << forward("wgrad");
}

TEST(InspectConfig, AnOverrideForAllGemmsKeepsTheLayer) {
  const std::string text = configOf(twoLinears(mxfp8(R"({"op": "fc1", "format": "high_precision"})")));
  EXPECT_TRUE(has(text, "    DisableQuantizationLayer:\n      enabled: True\n")) << text;
  EXPECT_FALSE(has(text, "    DisableQuantizationGEMM:"));
}

// TransformerEngine's recipe has the field itself.
TEST(InspectConfig, WhatTheRecipeLeavesAloneIsNoOverride) {
  const std::string text =
      configOf(twoLinears(R"({"name": "MXFP8BlockScaling", "backward_override": "high_precision"})"));
  EXPECT_FALSE(has(text, "    DisableQuantization")) << text;
  EXPECT_TRUE(has(text, "      tensors: [activation, weight, gradient]\n      stats: [cur_amax")) << text;
}

TEST(InspectConfig, SaysWhatTheToolCannot) {
  const auto numNotes = [](const std::string& overrides) {
    return exportOf(twoLinears(mxfp8(overrides)))->notes.size();
  };
  EXPECT_EQ(numNotes(""), 1u) << "about te.ops";
  EXPECT_EQ(numNotes(R"({"tensor": "grad_output", "format": "e5m2"})"), 2u);
  EXPECT_EQ(numNotes(R"({"tensor": "weight", "gemm": "fprop", "format": "high_precision"})"), 2u);
}

TEST(InspectConfig, FindsTheGemmsOfGroups) {
  for (const DocumentTemplate& entry : documentTemplates())
    if (entry.name == "grouped-mlp") {
      const std::string text = configOf(entry.text);
      EXPECT_TRUE(has(text, R"(\.gemm_[0-9]+)")) << text;
      return;
    }
  FAIL() << "no such template";
}

TEST(InspectConfig, NeedsALinearLayer) {
  const std::string message = configOf(sample(R"({"id": "act", "op": "GELU"})", R"(["x", "act.x"])", "act", "null"));
  EXPECT_EQ(message,
            "mlp: nvidia-dlfw-inspect observes linear layers, but this pipeline has none. Add a Linear, BasicLinear or "
            "GroupedLinear.");
}

CopyLosses copyOf(const std::string& name, double signalToNoise) {
  return {.name = name,
          .owner = name.substr(0, 3),
          .format = "e4m3 (mx_1x32)",
          .losses = {.underflowShare = 0.25, .meanSquaredError = 0.5, .signalToNoise = signalToNoise}};
}

RunRecord measuredRun(std::vector<CopyLosses> copies) {
  RunRecord record{.pipelineName = "mlp",
                   .pipeline = Json::parse(twoLinears(mxfp8(""))),
                   .environment = {{"device", "NVIDIA H200"}}};
  record.numerics = RunNumerics{.fusion = {}, .float32 = {}, .copies = std::move(copies)};
  return record;
}

std::string configOf(const RunRecord& record) {
  const Result<std::string> text = findExporter("dlfw-inspect")->write(record);
  return text ? *text : text.error().message;
}

TEST(InspectConfig, ARunChoosesTheLayersThatLostMost) {
  const std::string text =
      configOf(measuredRun({copyOf("fc1.linear.input@rowwise", 30.0), copyOf("fc1.linear.weight@rowwise", INFINITY),
                            copyOf("fc2.linear.weight@rowwise", 31.0), copyOf("fc2.linear.grad_output@rowwise", 20.0),
                            copyOf("fc2.linear.grad_output@columnwise", 12.5)}));
  EXPECT_TRUE(has(text, "quantized_layers:\n  enabled: True\n  layers:\n    layer_name_regex_pattern: '^fc2$'"))
      << text;
  EXPECT_TRUE(has(text,
                  "quantized_layers_not_logged:\n  enabled: False\n  layers:\n    layer_name_regex_pattern: "
                  "'^fc1$'"))
      << text;
  EXPECT_TRUE(
      has(text, "# fc2: gradient (columnwise) 12.5 dB, 25 % underflow, 0 % saturation, mse 0.5, e4m3 (mx_1x32)\n"))
      << text;
  EXPECT_TRUE(has(text, "# fc1: weight (rowwise) without noise, 25 % underflow")) << text;
  EXPECT_TRUE(has(text, "NVIDIA H200, in one step")) << text;
}

TEST(LayerLosses, AreThoseOfTheNoisiestCopyOfTheLayersOwn) {
  const std::vector<CopyLosses> copies = {
      copyOf("mlp.experts.input0@rowwise", 30.0), copyOf("mlp.experts.input12@rowwise", 20.0),
      copyOf("mlp.experts.weight0@columnwise", 25.0), copyOf("mlp.experts2.input0@rowwise", 1.0),
      copyOf("experts.input0@rowwise", 2.0)};
  const LayerLosses losses = lossesOf(InspectedLayer{.node = "mlp.experts"}, copies);
  ASSERT_EQ(losses.worst.size(), 2u);
  EXPECT_EQ(losses.worst[0].second, copies[1]);
  EXPECT_EQ(losses.worst[1].second, copies[2]);
  EXPECT_EQ(losses.signalToNoise(), 20.0);
  EXPECT_EQ(lossesOf(InspectedLayer{.node = "fc"}, copies).signalToNoise(), INFINITY);
}

TEST(InspectConfig, ARunMustSayWhatItLost) {
  RunRecord record = measuredRun({});
  const std::string wanted = "but this run has none. Measure them (`fuseline run PIPELINE --numerics";
  EXPECT_TRUE(has(configOf(record), wanted)) << "written by an older program: " << configOf(record);
  record.numerics.reset();
  EXPECT_TRUE(has(configOf(record), wanted)) << configOf(record);
}

}  // namespace
}  // namespace fuseline
