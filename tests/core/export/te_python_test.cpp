// Python source of pipelines: names, literals, calls, recipes, what is embedded, and where TransformerEngine differs.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_python.h"

#include "core/document/embedded_pipeline.h"
#include "core/document/file_format.h"
#include "core/export/te/python_text.h"
#include "core/export/te/te_recipe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using ::testing::Test;

TEST(PythonText, NamesAreIdentifiersOfTheirOwn) {
  PythonNames names({"forward"});
  EXPECT_EQ(names.of("layer1.fc-1"), "layer1_fc_1");
  EXPECT_EQ(names.of("layer1_fc_1"), "layer1_fc_1_2");
  EXPECT_EQ(names.of("layer1.fc-1"), "layer1_fc_1") << "the same name again";
  EXPECT_EQ(names.of("class"), "class_");
  EXPECT_EQ(names.of("2nd"), "_2nd");
  EXPECT_EQ(names.of("forward"), "forward_2");
}

TEST(PythonText, LiteralsReadBack) {
  EXPECT_EQ(pythonText("a \"b\" \\ \n"), R"("a \"b\" \\ \x0a")");
  EXPECT_EQ(pythonNumber(1e-5), "1e-05");
  EXPECT_EQ(pythonNumber(7), "7.0");
  EXPECT_EQ(pythonNumber(-INFINITY), "-float(\"inf\")");
}

TEST(PythonText, CallsBreakAsBlackBreaksThem) {
  const PythonCall call{"f", {std::string(30, 'a'), std::string(30, 'b')}};
  EXPECT_EQ(statement("x = ", call, "", 0), "x = f(" + call.arguments[0] + ", " + call.arguments[1] + ")\n");
  const PythonCall longer{"f", {std::string(40, 'a'), std::string(40, 'b')}};
  EXPECT_EQ(statement("x = ", longer, ",", 0),
            "x = f(\n    " + longer.arguments[0] + ", " + longer.arguments[1] + "\n),\n");
  EXPECT_EQ(statement("x = ", longer, "", 4),
            "    x = f(\n        " + longer.arguments[0] + ",\n        " + longer.arguments[1] + ",\n    )\n");
}

TEST(TeRecipe, WritesWhatChangesResultsAndSetsScalesBehind) {
  const Recipe recipe = *Recipe::create(*findRecipe("Float8CurrentScaling"), [] {
    Attributes fields;
    fields.set("use_power_2_scales", true);
    return fields;
  }());
  EXPECT_EQ(teRecipe(recipe).text,
            "RECIPE = recipe.Float8CurrentScaling(\n"
            "    fp8_format=recipe.Format.HYBRID, use_power_2_scales=True, backward_override=None\n"
            ")\n"
            "RECIPE.fp8_quant_fwd_inp = recipe.QParams(power_2_scale=True, amax_epsilon=0.0)\n"
            "RECIPE.fp8_quant_fwd_weight = recipe.QParams(power_2_scale=True, amax_epsilon=0.0)\n"
            "RECIPE.fp8_quant_bwd_grad = recipe.QParams(power_2_scale=True, amax_epsilon=0.0)\n");
  EXPECT_EQ(teRecipe(std::nullopt).text, "RECIPE = None\n");
  EXPECT_EQ(teRecipe(*Recipe::create(*findRecipe("None"))).text, "RECIPE = None\n");
}

TEST(TeRecipe, SaysThatOverridesAreNotThere) {
  const Recipe recipe = *Recipe::create(*findRecipe("MXFP8BlockScaling"), {}, {{.gemm = GemmRole::Wgrad}});
  EXPECT_EQ(teRecipe(recipe).notes.size(), 1u);
}

std::string templateText(const std::string& name) {
  for (const DocumentTemplate& entry : documentTemplates())
    if (entry.name == name) return entry.text;
  throw std::invalid_argument(name);
}

PipelineText exported(const std::string& text, const AnalysisOptions& options = {}) {
  const LoadedDocument loaded = parseDocument(text);
  const Analysis analysis = analyze(loaded.document, options);
  Result<PipelineText> result =
      tePython({.name = "sample", .document = loaded.document, .options = options, .analysis = analysis});
  if (!result) throw std::runtime_error(result.error().message);
  return *result;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// TransformerEngine would add to x itself, which the norm keeps: the gradients would be wrong.
TEST(TePython, SwitchesOffASumInPlaceThatWouldDestroyATensor) {
  const PipelineText training = exported(templateText("llama-mlp"));
  EXPECT_TRUE(contains(training.text, "\"add\": te.ops.AddExtraInput().set_extra_input_channel(0, \"save.extra\")"));
  ASSERT_EQ(training.notes.size(), 1u);
  EXPECT_TRUE(contains(training.notes[0], "norm keeps that tensor, save.y, for backward"));
  EXPECT_FALSE(contains(training.text, "ForwardLinearBiasAdd")) << "expected of the module as it is exported";
  const PipelineText inference = exported(templateText("llama-mlp"), {.lowering = {.pass = PassKind::Forward}});
  EXPECT_TRUE(inference.notes.empty());
  EXPECT_TRUE(contains(inference.text, "[\"ForwardLinearBiasAdd\", [4, 5]]"));
}

/// a (GELU) -> mix (External) -> add, in place, to what a made.
std::string aroundModule(const char* module) {
  return fmt::format(R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}},
    "symbols": {{"H": 16, "D": 4}}, "pipeline": {{"inputs": [{{"id": "x", "dtype": "bf16", "shape": [8, "H"]}}],
    "ops": [{{"id": "a", "op": "GELU"}}, {{"id": "mix", "op": "External", "attributes": {{"module": "{}"}}}},
            {{"id": "add", "op": "AddExtraInput", "attributes": {{"in_place": true}}}}],
    "wires": [["x", "a.x"], ["a.y", "mix.x"], ["a.y", "add.x"], ["mix.y", "add.extra"]],
    "outputs": [{{"id": "y", "from": "add.y"}}]}}}})",
                     module);
}

TEST(TePython, PutsSymbolsIntoTheExpressionOfAModule) {
  const std::string text = aroundModule("Mix({H / D}, {D}, {'a': 1}, {H)");
  EXPECT_TRUE(contains(exported(text).text, "Mix(4, 4, {'a': 1}, {H)"));
  EXPECT_TRUE(contains(exported(text, {.lowering = {.symbols = {{"D", 8}}}}).text, "Mix(2, 8, "));
}

TEST(TePython, DoesNotAddInPlaceToWhatAModuleMayKeep) {
  const PipelineText training = exported(aroundModule("Mix()"));
  ASSERT_EQ(training.notes.size(), 2u);
  EXPECT_TRUE(contains(training.notes[1], "mix may keep that tensor, mix.y, for backward") ||
              contains(training.notes[0], "mix may keep that tensor, mix.y, for backward"))
      << training.notes[0] << training.notes[1];
}

TEST(TePython, RefusesToCheckWhatFuselineDidNotRun) {
  EXPECT_TRUE(contains(exported(aroundModule("Mix()")).text, "NOT_RUN = [\"mix\"]"));
  EXPECT_TRUE(contains(exported(templateText("gpt-mlp")).text, "NOT_RUN = []"));
}

TEST(TePython, EmbedsThePipelineAsItWasAnalysed) {
  const AnalysisOptions options{.lowering = {.symbols = {{"M", 64}}},
                                .recipe = *Recipe::create(*findRecipe("MXFP8BlockScaling"))};
  const Result<std::string> embedded = embeddedText(exported(templateText("llama-mlp"), options).text);
  ASSERT_TRUE(embedded);
  const PipelineDocument document = parseDocument(*embedded).document;
  EXPECT_EQ(document.symbols()["M"], 64);
  EXPECT_EQ(document.recipe()["name"], "MXFP8BlockScaling");
  EXPECT_EQ(document.ops(), parseDocument(templateText("llama-mlp")).document.ops());
}

TEST(EmbeddedPipeline, IsFoundOnlyWhereItIsWholeAndAlone) {
  const PipelineDocument document = parseDocument(templateText("gpt-mlp")).document;
  const std::string text = embedded(document, "# ");
  EXPECT_EQ(*embeddedText("import torch\n" + text + "\n# more\n"), templateText("gpt-mlp"));
  std::string windows = text;
  for (std::size_t at = 0; (at = windows.find('\n', at)) != std::string::npos; at += 2) windows.insert(at, "\r");
  EXPECT_EQ(*embeddedText(windows), templateText("gpt-mlp"));
  EXPECT_FALSE(embeddedText("import torch\n"));
  EXPECT_FALSE(embeddedText(text.substr(0, text.size() - 10)));
  EXPECT_FALSE(embeddedText(text + text));
}

RC_GTEST_PROP(EmbeddedPipeline, NoTextIsTooStrangeToBeRead, (const std::string& text)) {
  const Result<std::string> found = embeddedText(text);
  RC_ASSERT(!found || contains(text, "fuseline pipeline begins"));
}

}  // namespace
}  // namespace fuseline
