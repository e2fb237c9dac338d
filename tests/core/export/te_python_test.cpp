// Python source of pipelines: names, literals, calls, recipes, the embedded file, and differences from
// TransformerEngine.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_python.h"

#include "core/document/embedded_pipeline.h"
#include "core/document/file_format.h"
#include "core/export/te/python_expression.h"
#include "core/export/te/python_text.h"
#include "core/export/te/te_recipe.h"

#include <algorithm>

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
  EXPECT_EQ(names.of("_modules"), "v_modules");
  EXPECT_EQ(names.of("__init__"), "v__init__");
}

TEST(PythonText, NoNameIsThatOfAMemberOfAModule) {
  PythonNames names(moduleMembers());
  for (const char* name : {"named_parameters", "register_forward_hook", "forward", "T_destination", "device"})
    EXPECT_EQ(names.of(name), fmt::format("{}_2", name));
}

TEST(PythonText, AnExpressionStandsOnOneLineAndIsClosed) {
  for (const char* text : {"te.DotProductAttention(32, 128)", "f('a)', \"b'\", {'c': [1]})", "f(\"\\\"\")", "x",
                           "f(*a, b=1e-5, **c)[1:, ::2]", "lambda x, *y: x if x not in y else -y[0] ** 2",
                           "[i for i, (j) in a if i is not None]", "{'a': 1, **b}", "0x1f"})
    EXPECT_TRUE(isPythonExpression(text)) << text;
  for (const char* text : {"f((",
                           "f())",
                           "f(]",
                           "f('",
                           "X())\nimport os\n(None",
                           "f()\r",
                           "f(); g()",
                           "f(  # a",
                           "",
                           "  ",
                           "f(\\",
                           "'\\",
                           "f(a b)",
                           "1 +",
                           "a = b",
                           "return 1",
                           "pass",
                           "not",
                           "f() if 1 else",
                           "*a",
                           "0777",
                           "f(x for)",
                           "f(a=1, a=2)",
                           "f(1, b=2, 3)",
                           "await f()",
                           "f()\u2028x",
                           "'a' b'c'",
                           "f('\\x')",
                           "f('\\N{foo}')",
                           "f(__debug__=1)",
                           "lambda x=1, y: 1",
                           "lambda **a, b: 1",
                           "1_"})
    EXPECT_FALSE(isPythonExpression(text)) << text;
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

TEST(PythonText, CallsOfLongNamesStayWhole) {
  const std::string results(90, 'r');
  EXPECT_EQ(statement(results + " = ", {"self.layers", {"x"}}, "", 8),
            "        " + results + " = self.layers(\n            x\n        )\n");
  EXPECT_EQ(statement(results + ": ", {"f(a).g", {"x"}}, ",", 0), results + ": f(\n    a\n).g(x),\n");
}

TEST(TeRecipe, WritesWhatChangesResultsAndSetsScalesBehind) {
  const Recipe recipe = *Recipe::create(*findRecipe("Float8CurrentScaling"), [] {
    Attributes fields;
    fields.set("use_power_2_scales", true);
    return fields;
  }());
  EXPECT_EQ(teRecipe(recipe).text,
            "RECIPE = recipe.Float8CurrentScaling(use_power_2_scales=True)\n"
            "RECIPE.fp8_quant_fwd_inp = recipe.QParams(power_2_scale=True, amax_epsilon=0.0)\n"
            "RECIPE.fp8_quant_fwd_weight = recipe.QParams(power_2_scale=True, amax_epsilon=0.0)\n"
            "RECIPE.fp8_quant_bwd_grad = recipe.QParams(power_2_scale=True, amax_epsilon=0.0)\n");
  EXPECT_EQ(teRecipe(std::nullopt).text, "RECIPE = None\n");
  EXPECT_EQ(teRecipe(*Recipe::create(*findRecipe("None"))).text, "RECIPE = None\n");
}

// Environment variables of TransformerEngine, such as NVTE_BACKWARD_OVERRIDE, change defaults only.
TEST(TeRecipe, LeavesTransformerEnginesDefaultsToIt) {
  for (const char* name :
       {"DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling", "MXFP8BlockScaling", "NVFP4BlockScaling"})
    EXPECT_EQ(teRecipe(*Recipe::create(*findRecipe(name))).text, fmt::format("RECIPE = recipe.{}()\n", name));
}

TEST(TeRecipe, LeavesOutWhatTransformerEngineHasNoArgumentFor) {
  Attributes fields;
  fields.set("split_accumulator_fprop", true);
  const TeRecipe recipe = teRecipe(*Recipe::create(*findRecipe("DelayedScaling"), fields));
  EXPECT_EQ(recipe.text, "RECIPE = recipe.DelayedScaling()\n");
  ASSERT_EQ(recipe.notes.size(), 1u);
  EXPECT_NE(recipe.notes[0].find("split_accumulator_fprop"), std::string::npos);
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
  const PipelineText inference = exported(templateText("llama-mlp"), {.lowering = {.pass = ExecutionMode::Inference}});
  EXPECT_TRUE(inference.notes.empty());
  EXPECT_TRUE(contains(inference.text, "[\"ForwardLinearBiasAdd\", [4, 5]]"));
}

/// A pipeline of consecutive ops, for x and inputs that wires name.
std::string chainOf(const char* dtype, const std::string& ops, const std::string& wires, const char* output,
                    const std::string& inputs = {}) {
  return fmt::format(R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}},
    "pipeline": {{"inputs": [{{"id": "x", "dtype": "{}", "shape": [128, 128]}}{}], "ops": [{}], "wires": [{}],
    "outputs": [{{"id": "y", "from": "{}"}}]}}}})",
                     dtype, inputs, ops, wires, output);
}

std::string opText(const char* id, const char* operation, const char* attributes = "") {
  return fmt::format(R"({{"id": "{}", "op": "{}", "attributes": {{{}}}}})", id, operation, attributes);
}

constexpr const char* kSizes = R"("in_features": 128, "out_features": 128)";

/// x + W x, with a branch that sums its gradient in place.
std::string residualInPlace() {
  return chainOf("f32",
                 opText("save", "MakeExtraOutput", R"("in_place": true)") + "," + opText("fc", "BasicLinear", kSizes) +
                     "," + opText("add", "AddExtraInput"),
                 R"(["x", "save.x"], ["save.y", "fc.x"], ["fc.y", "add.x"], ["save.extra", "add.extra"])", "add.y");
}

std::vector<std::string> repairsOf(const Analysis& analysis) {
  std::vector<std::string> labels;
  for (const Attempt& attempt : analysis.report.attempts)
    for (const Repair& repair : attempt.repairs) labels.push_back(repair.label);
  return labels;
}

// TransformerEngine's dgrad GEMM would add to the gradient that wgrad reads next: off by 58 % there.
TEST(TePython, SwitchesOffASumOfGradientsThatWouldSpoilThem) {
  const PipelineText text = exported(residualInPlace());
  EXPECT_TRUE(contains(text.text, "\"save\": te.ops.MakeExtraOutput().set_extra_output_channel("));
  EXPECT_FALSE(contains(text.text, "BackwardLinearAdd"));
  ASSERT_EQ(text.notes.size(), 1u);
  EXPECT_TRUE(contains(text.notes[0], "fc consumes that tensor, as the gradient of fc.y"));
}

TEST(TePython, SuchASumIsNotSuggestedAndNoted) {
  std::string off = residualInPlace();
  off.replace(off.find("true"), 4, "false");
  const std::vector<std::string> repairs = repairsOf(analyze(parseDocument(off).document, {.book = RuleBook::Te}));
  EXPECT_EQ(std::ranges::count(repairs, "Set save.in_place to true"), 0);
  const Analysis analysis = analyze(parseDocument(residualInPlace()).document);
  const auto note = std::ranges::find(analysis.lowered.diagnostics, "in-place", &Diagnostic::code);
  ASSERT_NE(note, analysis.lowered.diagnostics.end());
  EXPECT_EQ(note->node, "save");
  EXPECT_EQ(note->severity, Severity::Note);
}

std::string grouped(const char* attributes) {
  return chainOf("bf16", opText("fc", "GroupedLinear", fmt::format("{}, {}", kSizes, attributes).c_str()),
                 R"(["x", "fc.x"], ["m", "fc.split_sizes"])", "fc.y", R"(, {"id": "m", "dtype": "i64", "shape": [1]})");
}

TEST(TePython, WritesNumGroupsWhichTransformerEngineRequires) {
  EXPECT_TRUE(contains(exported(grouped(R"("num_groups": 1)")).text, "num_groups=1"));
}

std::string refusal(const std::string& text, const char* recipe = nullptr, const Attributes& fields = {}) {
  AnalysisOptions options;
  if (recipe) options.recipe = *Recipe::create(*findRecipe(recipe), fields);
  try {
    (void)exported(text, options);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(TePython, RefusesWhatGroupedLinearRefuses) {
  EXPECT_TRUE(contains(refusal(grouped(R"("weight_requires_grad": false)")), "weight_requires_grad is false"));
  EXPECT_EQ(refusal(grouped(R"("weight_requires_grad": false, "bias_requires_grad": false)")), "");
  EXPECT_TRUE(contains(refusal(grouped(R"("single_grouped_weight": true)"), "DelayedScaling"), "DelayedScaling"));
}

TEST(TePython, SaysBeforeAnExportThatGroupedLinearRefuses) {
  const auto notesOf = [](const char* attributes, const char* recipe) {
    AnalysisOptions options;
    if (recipe) options.recipe = *Recipe::create(*findRecipe(recipe), {});
    const Analysis analysis = analyze(parseDocument(grouped(attributes)).document, options);
    return std::ranges::count(analysis.lowered.diagnostics, "recipe-te", &Diagnostic::code);
  };
  EXPECT_EQ(notesOf(R"("weight_requires_grad": false)", nullptr), 1);
  EXPECT_EQ(notesOf(R"("weight_requires_grad": true)", nullptr), 0);
  EXPECT_EQ(notesOf(R"("single_grouped_weight": true)", "DelayedScaling"), 1);
}

// is_op_fuser_grouped_tensor_path_supported of TransformerEngine: its GEMM of all groups is the only one that takes
// them.
TEST(TePython, RefusesASingleParameterWithoutTheNativeGroupedGemm) {
  for (const char* attribute : {"single_grouped_weight", "single_grouped_bias"}) {
    const std::string single = grouped(fmt::format(R"("{}": true)", attribute).c_str());
    EXPECT_TRUE(contains(refusal(single, "CustomRecipe"), attribute));
    EXPECT_EQ(refusal(single, "NVFP4BlockScaling"), "");
    Attributes fields;
    fields.set("disable_rht", true);
    EXPECT_TRUE(contains(refusal(single, "NVFP4BlockScaling", fields), "without its transform"));
    const std::string f32 = grouped(fmt::format(R"("{}": true, "dtype": "f32")", attribute).c_str());
    EXPECT_EQ(refusal(f32), "");  // each group gets a parameter of its own
  }
}

TEST(TePython, MakesItsWeightsUnderQuantizedModelInit) {
  AnalysisOptions options;
  Attributes fields;
  fields.set(kQuantizedModelInit, true);
  options.recipe = *Recipe::create(*findRecipe("MXFP8BlockScaling"), fields);
  const std::string text = exported(templateText("gpt-mlp"), options).text;
  EXPECT_TRUE(
      contains(text, "        with te.quantized_model_init(recipe=RECIPE):\n            self.make_layers(device)"));
  EXPECT_TRUE(contains(text, "RECIPE = recipe.MXFP8BlockScaling()\n"));
  options.recipe = *Recipe::create(*findRecipe("MXFP8BlockScaling"));
  EXPECT_FALSE(contains(exported(templateText("gpt-mlp"), options).text, "te.quantized_model_init("));
}

TEST(TePython, NamesTheRowsOfGroupsThatNewerKernelsTake) {
  const auto numSaid = [](const char* recipe, ComputeCapability capability) {
    AnalysisOptions options;
    options.recipe = *Recipe::create(*findRecipe(recipe));
    options.capability = capability;
    return std::ranges::count_if(exported(grouped(R"("bias": false)"), options).notes, [](const std::string& note) {
      return contains(note, "multiples of 128 rows in each group");
    });
  };
  EXPECT_EQ(numSaid("Float8BlockScaling", {9, 0}), 1);
  EXPECT_EQ(numSaid("Float8BlockScaling", {10, 0}), 0);
  EXPECT_EQ(numSaid("Float8CurrentScaling", {10, 0}), 0);
  for (const char* recipe : {"MXFP8BlockScaling", "NVFP4BlockScaling"}) {
    EXPECT_EQ(numSaid(recipe, {10, 0}), 1);
    EXPECT_EQ(numSaid(recipe, {12, 0}), 0);
  }
}

// TransformerEngine, quantizer.cpp: "RHT is only supported for bfloat16 input".
TEST(TePython, RefusesARandomHadamardTransformOfOtherDTypes) {
  const auto linear = [](const char* dtype) {
    return chainOf(dtype, opText("fc", "BasicLinear", kSizes), R"(["x", "fc.x"])", "fc.y");
  };
  EXPECT_TRUE(contains(refusal(linear("f32"), "NVFP4BlockScaling"), "disable_rht=true"));
  EXPECT_TRUE(contains(refusal(linear("f16"), "NVFP4BlockScaling"), "its input is f16"));
  EXPECT_EQ(refusal(linear("bf16"), "NVFP4BlockScaling"), "");
  EXPECT_TRUE(contains(
      refusal(chainOf("bf16", opText("fc", "BasicLinear", R"("in_features": 128, "out_features": 128, "dtype": "f32")"),
                      R"(["x", "fc.x"])", "fc.y"),
              "NVFP4BlockScaling"),
      "its output gradient is f32"));
  Attributes fields;
  fields.set("backward_override", std::string("high_precision"));
  EXPECT_TRUE(contains(refusal(linear("f32"), "NVFP4BlockScaling", fields), "its input is f32"));
  fields = {};
  fields.set("disable_rht", true);
  EXPECT_EQ(refusal(linear("f32"), "NVFP4BlockScaling", fields), "");
}

TEST(TePython, NamesItsSequentialsUnlikeAnyOp) {
  const std::string text =
      exported(chainOf("f32", opText("fc", "Linear", kSizes) + "," + opText("layers", "Formula", ""),
                       R"(["x", "fc.x"], ["fc.y", "layers.x"])", "layers.y"))
          .text;
  EXPECT_TRUE(contains(text, "self.layers = te.ops.Sequential(")) << text;
  EXPECT_TRUE(contains(text, "self.layers_2 = Formula_layers_2(")) << text;
}

TEST(TePython, ComputesDelayedGradients) {
  const PipelineText text = exported(grouped(R"("delay_wgrad_compute": true)"));
  EXPECT_TRUE(contains(text.text, "finish_gradients(model)\n    return outputs"));
  EXPECT_TRUE(std::ranges::any_of(text.notes, [](const std::string& note) { return contains(note, "backward_dw()"); }));
}

TEST(TePython, SetsTheEnvironmentThatItNeeds) {
  const PipelineText text = exported(grouped(R"("single_grouped_weight": true)"));
  const std::size_t set = text.text.find("os.environ.setdefault(\"NVTE_GROUPED_LINEAR_SINGLE_PARAM\", \"1\")");
  EXPECT_LT(set, text.text.find("import transformer_engine"));
  ASSERT_EQ(text.notes.size(), 1u);
  EXPECT_TRUE(contains(text.notes[0], "NVTE_GROUPED_LINEAR_SINGLE_PARAM=1"));
}

// TransformerEngine, ops/basic/grouped_linear.py: shared parameters need bf16 or f16.
TEST(TePython, WritesAParameterForEachGroupInFloat32) {
  const std::string shared =
      chainOf("f32", opText("fc", "GroupedLinear", fmt::format(R"({}, "single_grouped_weight": true)", kSizes).c_str()),
              R"(["x", "fc.x"], ["m", "fc.split_sizes"])", "fc.y", R"(, {"id": "m", "dtype": "i64", "shape": [1]})");
  const PipelineText text = exported(shared);
  EXPECT_FALSE(contains(text.text, "single_grouped_weight=True"));
  EXPECT_FALSE(contains(text.text, "NVTE_GROUPED_LINEAR_SINGLE_PARAM"));
  EXPECT_TRUE(contains(text.text, "\"fc.weight\": \"layers.fc.weight{}\"")) << text.text;
  ASSERT_EQ(text.notes.size(), 1u);
  EXPECT_TRUE(contains(text.notes[0], "each group has its own parameter"));
}

// A GEMM of TransformerEngine adds only to its own dtype; without in_place the sum is f32 all the same.
TEST(TePython, SwitchesOffASumInPlaceOfAnotherDType) {
  const std::string ops =
      opText("fc", "BasicLinear", kSizes) + "," + opText("add", "AddExtraInput", R"("in_place": true)");
  const char* const wires = R"(["x", "fc.x"], ["fc.y", "add.x"], ["e", "add.extra"])";
  const auto sum = [&](const char* dtype, const char* extra) {
    return chainOf(dtype, ops, wires, "add.y",
                   fmt::format(R"(, {{"id": "e", "dtype": "{}", "shape": [128, 128]}})", extra));
  };
  const PipelineText text = exported(sum("bf16", "f32"));
  EXPECT_TRUE(contains(text.text, "\"add\": te.ops.AddExtraInput()"));
  EXPECT_FALSE(contains(text.text, "ForwardLinearBiasAdd"));
  EXPECT_TRUE(contains(text.notes[0], "produces bf16, not f32"));
  EXPECT_TRUE(contains(refusal(sum("f32", "bf16")), "add: TransformerEngine cannot compute this sum in place"));
}

TEST(TePython, PlansForAGpuThatHasTheRecipe) {
  const auto planned = [](const char* recipe) {
    AnalysisOptions options;
    if (recipe) options.recipe = *Recipe::create(*findRecipe(recipe));
    return exported(templateText("gpt-mlp"), options).text;
  };
  EXPECT_TRUE(contains(planned(nullptr), "on a GPU of compute capability 9.0"));
  EXPECT_TRUE(contains(planned("MXFP8BlockScaling"), "on a GPU of compute capability 10.0"));
}

TEST(TePython, AModuleAloneHasNoProgram) {
  const LoadedDocument loaded = parseDocument(templateText("gpt-mlp"));
  const AnalysisOptions options;
  const Analysis analysis = analyze(loaded.document, options);
  const Result<PipelineText> text = tePython(
      {.name = "sample", .document = loaded.document, .options = options, .analysis = analysis, .moduleOnly = true});
  ASSERT_TRUE(text);
  EXPECT_TRUE(contains(text->text, "class Pipeline(torch.nn.Module)"));
  EXPECT_TRUE(text->text.ends_with("RECIPE = None\n"));
  for (const char* part : {"argparse", "INPUTS", "PLAN", "def main"}) EXPECT_FALSE(contains(text->text, part)) << part;
}

/// a (GELU) -> mix (External) -> add, in place, to the output of a.
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
  const std::string text = aroundModule("Mix({H / D}, {D}, {'a': 1}, {H: 2})");
  EXPECT_TRUE(contains(exported(text).text, "Mix(4, 4, {'a': 1}, {H: 2})"));
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

TEST(TorchPython, RefusesAnExternalAtWhichThePipelineIsCut) {
  const LoadedDocument loaded = parseDocument(aroundModule("Mix()"));
  const Analysis analysis = analyze(loaded.document);
  const Result<PipelineText> text = findPipelineExporter("torch")->write(
      {.name = "sample", .document = loaded.document, .options = {}, .analysis = analysis});
  ASSERT_FALSE(text);
  EXPECT_TRUE(contains(text.error().message, "mix: an External cannot be written in PyTorch")) << text.error().message;
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
