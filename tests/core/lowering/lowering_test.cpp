// Diagnostics of lowering: every code with its sentence, its place, and repairs that remove it.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/apply_edit.h"
#include "tests/support/example_texts.h"

namespace fuseline::testing {
namespace {

/// A text, the output of `validate` for it, and the labels of the first problem's repairs.
struct Case {
  const char* name;
  std::string text;
  std::string expected;
  std::vector<std::string> repairs;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const std::string kGelu = "\n{\"id\": \"act\", \"op\": \"GELU\", \"attributes\": {}}";
const std::string kGeluWire = R"(["x", "act.x"])";

std::string oneOp(const std::string& op, const std::string& id = "fc") {
  return pipelineText("\n" + op, "[\"x\", \"" + id + ".x\"]", id + ".y");
}

/// x: [M, H] bf16 and splits through a GroupedLinear of two groups, followed by GELU.
std::string groupedText(const std::string& splits, const std::string& geluSource = "experts.y", int numGroups = 2) {
  return fileWith(R"({"inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]},
)" + splits + R"(],
"ops": [{"id": "experts", "op": "GroupedLinear", "attributes": {"num_groups": )" +
                  std::to_string(numGroups) +
                  R"(, "in_features": "H", "out_features": 8}},
{"id": "act", "op": "GELU", "attributes": {}}],
"wires": [["x", "experts.x"], ["splits", "experts.split_sizes"], [")" +
                  geluSource +
                  R"(", "act.x"]], "outputs": [{"id": "y", "from": "act.y"}, {"id": "z", "from": "experts.y"}]})");
}

/// Names and gaps.
std::vector<Case> attributeNameCases() {
  return {
      {"UnknownOp",
       oneOp(R"({"id": "fc", "op": "Liner", "attributes": {}})"),
       "file:5:20: error: fc: there is no op \"Liner\"; did you mean Linear? The file keeps the op, but it cannot run. "
       "[unknown-op at /pipeline/ops/0/op]\n",
       {"Change it to Linear"}},
      {"UnknownAttribute",
       oneOp(R"({"id": "fc", "op": "Bias", "attributes": {"sise": 16, "size": "H"}})"),
       "file:5:51: error: fc: Bias has no attribute sise (it has size, dtype, tensor_parallel, bias_requires_grad); "
       "did you mean size? "
       "[unknown-attribute at "
       "/pipeline/ops/0/attributes/sise]\n",
       {"Remove sise"}},
      {"RenamedAttribute",
       oneOp(R"({"id": "fc", "op": "ConstantScale", "attributes": {"scal": 2.0}})"),
       "file:5:51: error: fc: ConstantScale needs the attribute scale (number). It reads [8, 16] bf16. "
       "[missing-attribute at /pipeline/ops/0/attributes]\n"
       "file:5:60: error: fc: ConstantScale has no attribute scal (it has scale); did you mean scale? "
       "[unknown-attribute at /pipeline/ops/0/attributes/scal]\n",
       {}},
      {"MissingAttribute",
       oneOp(R"({"id": "fc", "op": "Bias", "attributes": {}})"),
       "file:5:42: error: fc: Bias needs the attribute size (integer). It reads [8, 16] bf16. [missing-attribute at "
       "/pipeline/ops/0/attributes]\n",
       {"Set size to 16"}},
  };
}

std::vector<Case> attributeTypeCases() {
  return {
      {"WrongType",
       oneOp(R"({"id": "fc", "op": "Linear", "attributes": {"in_features": 16, "out_features": 8, "bias": "true"}})"),
       "file:5:91: error: fc: bias is \"true\"; expected true or false. [wrong-type at "
       "/pipeline/ops/0/attributes/bias]\n",
       {"Set bias to true", "Reset bias to its default"}},
      {"RealForInteger",
       oneOp(R"({"id": "fc", "op": "Bias", "attributes": {"size": 16.0}})"),
       "file:5:51: error: fc: size is 16.0; expected an integer. [wrong-type at /pipeline/ops/0/attributes/size]\n",
       {"Write 16"}},
      {"BadChoice",
       oneOp(R"({"id": "fc", "op": "Bias", "attributes": {"size": 16, "dtype": "bf61"}})"),
       "file:5:64: error: fc: dtype is \"bf61\"; expected one of f32, f16, bf16; did you mean bf16? [bad-choice at "
       "/pipeline/ops/0/attributes/dtype]\n",
       {"Set dtype to \"bf16\"", "Set dtype to \"f32\"", "Set dtype to \"f16\""}},
      {"BadName",
       oneOp(R"({"id": "fc", "op": "Linear", "attributes": {"in_features": 16, "out_features": 8,
"userbuffers_comm_name": "fc 1"}})"),
       "file:6:26: error: fc: userbuffers_comm_name is \"fc 1\"; expected a name of letters, digits and _, not "
       "starting with a digit. [bad-name at /pipeline/ops/0/attributes/userbuffers_comm_name]\n",
       {"Reset userbuffers_comm_name to its default"}},
      {"BadMode",
       oneOp(R"({"id": "fc", "op": "BasicLinear", "attributes": {"in_features": 16, "out_features": 8,
"tensor_parallel_mode": "rows"}})"),
       "file:6:25: error: fc: tensor_parallel_mode is \"rows\"; expected one of none, column, row; did you mean row? "
       "[bad-choice at /pipeline/ops/0/attributes/tensor_parallel_mode]\n",
       {"Set tensor_parallel_mode to \"row\"", "Set tensor_parallel_mode to \"none\"",
        "Set tensor_parallel_mode to \"column\""}},
  };
}

std::vector<Case> attributeValueCases() {
  return {
      {"NoGroups",
       groupedText(R"({"id": "splits", "dtype": "i64", "shape": [2]})", "experts.y", 0),
       "file:5:79: error: experts: num_groups is 0; expected between 1 and 4096. [out-of-range at "
       "/pipeline/ops/0/attributes/num_groups]\n",
       {"Set num_groups to 1"}},
      {"OutOfRange",
       oneOp(R"({"id": "fc", "op": "Bias", "attributes": {"size": 0}})"),
       "file:5:51: error: fc: size is 0; expected between 1 and 16777216. [out-of-range at "
       "/pipeline/ops/0/attributes/size]\n",
       {"Set size to 1"}},
      {"AttributeOverflow",
       oneOp(R"({"id": "fc", "op": "Bias", "attributes": {"size": 99999999999999999999}})"),
       "file:5:51: error: fc: size is 1e+20, which does not fit into 64 bits. [integer-overflow at "
       "/pipeline/ops/0/attributes/size]\n",
       {}},
      {"ExpressionOverflow",
       oneOp(R"({"id": "fc", "op": "Bias", "attributes": {"size": "H * 9223372036854775807"}})"),
       "file:5:51: error: fc: size is \"H * 9223372036854775807\"; at character 3: 16 * 9223372036854775807 does not "
       "fit "
       "into 64 bits. [integer-overflow at /pipeline/ops/0/attributes/size]\n",
       {}},
  };
}

std::vector<Case> expressionCases() {
  return {
      {"UnknownSymbol",
       oneOp(R"({"id": "fc", "op": "Bias", "attributes": {"size": "1*h"}})"),
       "file:5:51: error: fc: size is \"1*h\"; at character 3: there is no symbol h; did you mean H? [unknown-symbol "
       "at /pipeline/ops/0/attributes/size]\n",
       {"Replace h with H"}},
      {"BadExpression",
       oneOp(R"({"id": "fc", "op": "Bias", "attributes": {"size": "H +"}})"),
       "file:5:51: error: fc: size is \"H +\"; at character 4: expected a number, a symbol or \"(\", found the end. "
       "[bad-expression at /pipeline/ops/0/attributes/size]\n",
       {}},
      {"ListElement",
       oneOp(R"({"id": "fc", "op": "RMSNorm", "attributes": {"normalized_shape": ["h"]}})"),
       "file:5:67: error: fc: normalized_shape[0] is \"h\"; at character 1: there is no symbol h; did you mean H? "
       "[unknown-symbol at /pipeline/ops/0/attributes/normalized_shape/0]\n",
       {"Replace h with H"}},
  };
}

std::vector<Case> shapeCases() {
  return {
      {"ShapeMismatch",
       oneOp(R"({"id": "fc", "op": "Linear", "attributes": {"in_features": "F", "out_features": 8}})"),
       "file:5:60: error: fc: in_features is 32, but the last axis of x has 16 elements. [shape-mismatch at "
       "/pipeline/ops/0/attributes/in_features]\n",
       {"Set in_features to 16"}},
      {"ShapeMismatchOfAList",
       oneOp(R"({"id": "fc", "op": "LayerNorm", "attributes": {"normalized_shape": ["F"]}})"),
       "?shape-mismatch at /pipeline/ops/0/attributes/normalized_shape",
       {"Set normalized_shape to [16]"}},
      {"MixedDTypes",
       fileWith(
           R"({"inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}, {"id": "z", "dtype": "f32", "shape": ["M", "H"]}],
         "ops": [{"id": "add", "op": "AddExtraInput", "attributes": {}}],
         "wires": [["x", "add.x"], ["z", "add.extra"]], "outputs": [{"id": "y", "from": "add.y"}]})"),
       "?mixed-dtypes at /pipeline/ops/0",
       {}},
      {"TensorTooLarge",
       fileWith(R"({"inputs": [{"id": "x", "dtype": "bf16", "shape": ["M * 1000000000000000", "H"]}],
         "ops": [{"id": "fc", "op": "Linear", "attributes": {"in_features": 16, "out_features": 16000000}}],
         "wires": [["x", "fc.x"]], "outputs": [{"id": "y", "from": "fc.y"}]})"),
       "file:4:97: error: fc: a tensor [8000000000000000, 16000000] bf16 would have more bytes than 64 bits can count. "
       "[integer-overflow at /pipeline/ops/0/attributes/out_features]\n",
       {"Set out_features to 16"}},
      {"InputTooLarge",
       fileWith(R"({"inputs": [{"id": "x", "dtype": "f32", "shape": [4294967296, 4294967296]}], "ops": [],
         "wires": [], "outputs": []})"),
       "?integer-overflow at /pipeline/inputs/0/shape",
       {}},
      {"NegativeExtent",
       fileWith(
           R"({"inputs": [{"id": "x", "dtype": "f32", "shape": ["H - F"]}], "ops": [], "wires": [], "outputs": []})"),
       "?out-of-range at /pipeline/inputs/0/shape/0",
       {}},
      {"UnknownDtype",
       fileWith(R"({"inputs": [{"id": "x", "dtype": "fp16", "shape": ["H"]}], "ops": [], "wires": [], "outputs": []})"),
       "?unknown-dtype at /pipeline/inputs/0/dtype",
       {"Set the dtype to bf16", "Set the dtype to f32", "Set the dtype to f16", "Set the dtype to i64"}},
      {"MissingShape",
       fileWith(R"({"inputs": [{"id": "x", "dtype": "f16"}], "ops": [], "wires": [], "outputs": []})"),
       "?missing-field at /pipeline/inputs/0",
       {}},
  };
}

std::vector<Case> integerCases() {
  return {
      {"IntegerGradient",
       groupedText(R"({"id": "splits", "dtype": "i64", "shape": [2], "requires_grad": true})"),
       "file:4:65: error: splits: requires_grad is true, but a tensor of i64 has no gradient. Set it to false or "
       "remove it. [integer-gradient at /pipeline/inputs/1/requires_grad]\n",
       {"Remove requires_grad"}},
      {"IntegersForNumbers",
       groupedText(R"({"id": "splits", "dtype": "int64", "shape": [2]})", "splits"),
       "file:6:1: error: act: x is [2] i64, but it must be f32, f16 or bf16; integers are counts only. [dtype-mismatch "
       "at /pipeline/ops/1]\n",
       {}},
      {"NumbersForIntegers",
       groupedText(R"({"id": "splits", "dtype": "bf16", "shape": [2]})"),
       "file:5:9: error: experts: split_sizes is [2] bf16, but it must be i64; it holds counts. [dtype-mismatch at "
       "/pipeline/ops/0]\n",
       {}},
      {"NumberOfGroups",
       groupedText(R"({"id": "splits", "dtype": "i64", "shape": [4]})"),
       "file:5:79: error: experts: num_groups is 2, but split_sizes has the shape [4]; it must have one size for each "
       "group, the shape [2]. [shape-mismatch at /pipeline/ops/0/attributes/num_groups]\n",
       {"Set num_groups to 4"}},
  };
}

std::vector<Case> wireCases() {
  return {
      {"UnknownSource",
       pipelineText(kGelu, R"(["xx", "act.x"])", "act.y"),
       "file:6:12: error: There is no \"xx\"; expected an op or a pipeline input; did you mean x? [unknown-node "
       "at /pipeline/wires/0/0]\n",
       {"Use x", "Remove the wire"}},
      {"UnknownTarget",
       pipelineText(kGelu, kGeluWire + R"(, ["x", "actt.x"])", "act.y"),
       "file:6:33: error: There is no \"actt\"; expected an op; did you mean act? [unknown-node at "
       "/pipeline/wires/1/1]\n",
       {"Use act", "Remove the wire"}},
      {"UnknownOutputPort",
       pipelineText(kGelu, kGeluWire, "act.z"),
       "file:7:33: error: act (GELU) has no output \"z\"; it has y. Did you mean act.y? [unknown-port at "
       "/pipeline/outputs/0/from]\n",
       {"Use act.y", "Remove the output"}},
      {"UnknownInputPort",
       pipelineText(kGelu, R"(["x", "act"])", "act.y"),
       "file:6:17: error: act (GELU) is used without the name of an input; it has x. Did you mean act.x? [unknown-port "
       "at /pipeline/wires/0/1]\n",
       {"Use act.x", "Remove the wire"}},
      {"PortOfAnInput",
       pipelineText(kGelu, R"(["x.y", "act.x"])", "act.y"),
       "file:6:12: error: x is a pipeline input, which has no port \"y\". [unknown-port at /pipeline/wires/0/0]\n",
       {"Read x"}},
      {"WireIntoAnInput",
       pipelineText(kGelu, kGeluWire + R"(, ["act.y", "x"])", "act.y"),
       "?unknown-node at /pipeline/wires/1/1",
       {"Remove the wire"}},
      {"InputTaken",
       pipelineText(kGelu, kGeluWire + R"(, ["x", "act.x"])", "act.y"),
       "file:6:33: error: act.x is already connected to x, so x cannot be connected too. Remove one of the wires. "
       "[input-taken at /pipeline/wires/1/1]\n",
       {"Remove the wire"}},
      {"Unconnected", pipelineText(kGelu, "", "act.y"), "?unconnected-input at /pipeline/ops/0", {}},
      {"Cycle",
       pipelineText(R"({"id": "a", "op": "GELU", "attributes": {}}, {"id": "b", "op": "GELU", "attributes": {}},
         {"id": "c", "op": "GELU", "attributes": {}})",
                    R"(["a.y", "b.x"], ["b.y", "a.x"], ["x", "c.x"])", "c.y"),
       "?cycle at /pipeline/wires/1",
       {"Remove the wire from b.y to a.x"}},
      {"SelfLoop",
       pipelineText(kGelu, R"(["act.y", "act.x"])", "act.y"),
       "?cycle at /pipeline/wires/0",
       {"Remove the wire from act.y to act.x"}},
      {"OutputIsInput",
       pipelineText(kGelu, kGeluWire, "x"),
       "?output-is-input at /pipeline/outputs/0/from",
       {"Remove the output"}},
  };
}

std::vector<Case> namingCases() {
  return {
      {"DuplicateId",
       pipelineText(kGelu + ", " + kGelu, kGeluWire, "act.y"),
       "file:6:8: error: The id \"act\" is used by another input, op or output. Ids must be unique. [duplicate-id at "
       "/pipeline/ops/1/id]\n",
       {"Name it act2"}},
      {"DuplicateIdOfOutput",
       pipelineText("{\"id\": \"y\", \"op\": \"GELU\", \"attributes\": {}}", R"(["x", "y.x"])", "y.y"),
       "?duplicate-id at /pipeline/outputs/0/id",
       {"Name it y2"}},
      {"BadId",
       pipelineText(kGelu + R"(, {"id": "a b", "op": "Mystery", "attributes": {}})", kGeluWire, "act.y"),
       "?bad-id at /pipeline/ops/1/id",
       {"Name it a_b"}},
      {"MissingId",
       pipelineText(kGelu + R"(, {"op": "GELU", "attributes": {}})", kGeluWire, "act.y"),
       "?missing-id at /pipeline/ops/1",
       {"Name it op"}},
      {"MissingOp",
       pipelineText(kGelu + R"(, {"id": "b", "attributes": {}})", kGeluWire, "act.y"),
       "?missing-field at /pipeline/ops/1",
       {}},
      {"NoOutputs",
       fileWith("{\"inputs\": [{\"id\": \"x\", \"dtype\": \"bf16\", \"shape\": [4, 4]}], \"ops\": [" + kGelu +
                "], \"wires\": [[\"x\", \"act.x\"]], \"outputs\": []}"),
       "?no-outputs at /pipeline",
       {"Connect act.y to an output"}},
      {"UnusedResult",
       pipelineText(kGelu + R"(, {"id": "b", "op": "GELU", "attributes": {}})", kGeluWire + R"(, ["x", "b.x"])",
                    "act.y"),
       "?unused-result at /pipeline/ops/1",
       {"Connect b.y to an output", "Remove b"}},
      {"UnusedInput",
       fileWith(R"({"inputs": [{"id": "x", "dtype": "f32", "shape": [4]}, {"id": "z", "dtype": "f32", "shape": [4]}],
         "ops": [{"id": "a", "op": "GELU", "attributes": {}}], "wires": [["x", "a.x"]],
         "outputs": [{"id": "y", "from": "a.y"}]})"),
       "?unused-input at /pipeline/inputs/1",
       {"Remove input z"}},
      {"SymbolCycle",
       R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
         "symbols": {"A": "B + 1", "B": "2 * C", "C": "A"},
         "pipeline": {"inputs": [{"id": "x", "dtype": "f32", "shape": ["A"]}], "ops": [], "wires": [], "outputs": []}})",
       "?symbol-cycle at /symbols/A",
       {}},
  };
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  const std::vector<std::vector<Case>> groups = {attributeNameCases(), attributeTypeCases(), attributeValueCases(),
                                                 expressionCases(),    shapeCases(),         integerCases(),
                                                 wireCases(),          namingCases()};
  for (const std::vector<Case>& group : groups) cases.insert(cases.end(), group.begin(), group.end());
  return cases;
}

class Problems : public ::testing::TestWithParam<Case> {};

/// "?code at pointer" names one problem among others; otherwise it is the first.
const Diagnostic* problemOf(const Case& c, const std::vector<Diagnostic>& found) {
  for (const Diagnostic& diagnostic : found)
    if (!c.expected.starts_with("?") || "?" + diagnostic.code + " at " + diagnostic.pointer == c.expected)
      return &diagnostic;
  return nullptr;
}

TEST_P(Problems, AreReportedWithPlaceAndValues) {
  const Case& c = GetParam();
  const std::vector<Diagnostic> found = problems(c.text);
  if (c.expected.starts_with("?")) {
    EXPECT_TRUE(problemOf(c, found)) << listed(found);
  } else {
    EXPECT_EQ(listed(found), c.expected);
  }
}

TEST(Lowering, GivesIntegersNoGradient) {
  const std::string text = groupedText(R"({"id": "splits", "dtype": "i64", "shape": [2]})");
  EXPECT_EQ(listed(problems(text)), "");
  const Graph graph = lower(parseDocument(text).document).graph;
  EXPECT_EQ(graph.value(graph.findValue("splits")).spec, (TensorSpec{DType::I64, {2}}));
  EXPECT_FALSE(graph.value(graph.findValue("splits")).needsGradient);
  EXPECT_EQ(graph.node(graph.findNode("experts")).needs.inputs, (std::vector<bool>{true, false}));
}

TEST_P(Problems, OfferTheRepairsThatExist) {
  const std::vector<Diagnostic> found = problems(GetParam().text);
  const Diagnostic* problem = problemOf(GetParam(), found);
  ASSERT_TRUE(problem) << listed(found);
  std::vector<std::string> labels;
  for (const Repair& repair : problem->repairs) labels.push_back(repair.label);
  EXPECT_EQ(labels, GetParam().repairs) << listed(found);
}

bool contains(const std::vector<Diagnostic>& all, const Diagnostic& one) {
  return std::ranges::any_of(all, [&](const Diagnostic& d) { return d.code == one.code && d.message == one.message; });
}

TEST_P(Problems, AreRemovedByEachOfTheirRepairs) {
  const PipelineDocument document = parseDocument(GetParam().text).document;
  for (const Diagnostic& diagnostic : lower(document).diagnostics) {
    for (const Repair& repair : diagnostic.repairs) {
      PipelineDocument repaired = document;
      ASSERT_TRUE(applyEdit(repaired, repair.edit)) << repair.label;
      EXPECT_FALSE(contains(lower(repaired).diagnostics, diagnostic)) << repair.label << ": " << diagnostic.message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lowering, Problems, ::testing::ValuesIn(allCases()),
                         [](const auto& entry) { return std::string(entry.param.name); });

TEST(Lowering, ReportsIndependentProblemsTogetherAndNothingElse) {
  const std::string text = pipelineText(
      R"({"id": "a", "op": "Linear", "attributes": {"in_features": 7, "out_features": "H"}},
         {"id": "b", "op": "GELU", "attributes": {}},
         {"id": "c", "op": "Bias", "attributes": {"size": "nope"}},
         {"id": "d", "op": "RMSNorm", "attributes": {"normalized_shape": 99}})",
      R"(["x", "a.x"], ["a.y", "b.x"], ["b.y", "c.x"], ["x", "d.x"])", "c.y");
  EXPECT_EQ(codes(problems(text)),
            (std::vector<std::string>{"shape-mismatch", "unknown-symbol", "unused-result", "shape-mismatch"}));
}

TEST(Lowering, NamesTheOpsOfACycle) {
  const std::string text =
      pipelineText(R"({"id": "a", "op": "GELU", "attributes": {}}, {"id": "b", "op": "GELU", "attributes": {}},
        {"id": "c", "op": "GELU", "attributes": {}}, {"id": "d", "op": "GELU", "attributes": {}})",
                   R"(["c.y", "a.x"], ["a.y", "b.x"], ["b.y", "c.x"], ["c.y", "d.x"])", "d.y");
  const std::vector<Diagnostic> found = problems(text);
  ASSERT_EQ(codes(found), (std::vector<std::string>{"cycle"}));
  EXPECT_EQ(found[0].message,
            "These ops form a cycle: a -> b -> c -> a. A pipeline must have no cycles; remove one of the wires.");
}

TEST(Lowering, ReportsEveryCycle) {
  const std::string text = pipelineText(
      R"({"id": "a", "op": "GELU"}, {"id": "b", "op": "GELU"}, {"id": "c", "op": "GELU"}, {"id": "d", "op": "GELU"})",
      R"(["a.y", "b.x"], ["b.y", "a.x"], ["c.y", "d.x"], ["d.y", "c.x"])", "d.y");
  EXPECT_EQ(codes(problems(text)), (std::vector<std::string>{"cycle", "cycle"}));
}

TEST(Lowering, ReshapesToShapesOfSymbols) {
  const LoadedDocument loaded =
      parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
    "symbols": {"M": 6, "D": 4, "heads": 3},
    "pipeline": {"inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "D*heads"]}],
      "ops": [{"id": "split", "op": "Reshape", "attributes": {"shape": ["M", "heads", "D"]}},
              {"id": "flat", "op": "Reshape", "attributes": {"shape": [-1, "heads*D"]}}],
      "wires": [["x", "split.x"], ["split.y", "flat.x"]], "outputs": [{"id": "y", "from": "flat.y"}]}})");
  const LoweredGraph lowered = lower(loaded.document);
  ASSERT_EQ(listed(lowered.diagnostics), "");
  const Graph& graph = lowered.graph;
  EXPECT_EQ(graph.value(graph.findValue("split.y")).spec.shape, (Shape{6, 3, 4}));
  EXPECT_EQ(graph.value(graph.findValue("flat.y")).spec.shape, (Shape{6, 12}));
}

TEST(Lowering, ResolvesExpressionsListsAndDefaults) {
  const LoadedDocument loaded =
      parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
    "symbols": {"F": "4*H", "H": "K / 2", "K": 32},
    "pipeline": {"inputs": [{"id": "x", "dtype": "float32", "shape": ["2", "H"], "requires_grad": false}],
      "ops": [{"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": "H"}},
              {"id": "fc", "op": "Linear", "attributes": {"in_features": "H", "out_features": "2*F", "bias": false}}],
      "wires": [["x", "norm.x"], ["norm.y", "fc.x"]], "outputs": [{"id": "y", "from": "fc.y"}]}})");
  const LoweredGraph lowered = lower(loaded.document);
  ASSERT_EQ(listed(lowered.diagnostics), "");
  const Graph& graph = lowered.graph;
  const Attributes& norm = graph.node(graph.findNode("norm")).attributes;
  EXPECT_EQ(norm.integers("normalized_shape"), (std::vector<std::int64_t>{16}));
  EXPECT_EQ(norm.real("eps"), 1e-5);
  EXPECT_FALSE(norm.boolean("zero_centered_gamma"));
  EXPECT_EQ(toString(graph.value(graph.outputs().front().value).spec), "[2, 128] f32");
  EXPECT_FALSE(graph.value(graph.findValue("x")).needsGradient);
}

TEST(Lowering, ReplacesSymbolsOnRequest) {
  const PipelineDocument document = parseDocument(documentTemplates().front().text).document;
  LoweredGraph lowered = lower(document, {.symbols = {{"M", 3}}});
  ASSERT_FALSE(hasErrors(lowered.diagnostics));
  EXPECT_EQ(lowered.graph.value(lowered.graph.inputs().front()).spec.shape.front(), 3);
  lowered = lower(document, {.symbols = {{"MM", 3}}});
  ASSERT_EQ(codes(lowered.diagnostics), std::vector<std::string>{"unknown-symbol"});
  EXPECT_EQ(lowered.diagnostics[0].message, "The pipeline has no symbol MM to set to 3; did you mean M?");
}

TEST(Lowering, OrdersOpsByWiresAndThenByTheDocument) {
  const std::string text =
      pipelineText(R"({"id": "last", "op": "GELU"}, {"id": "first", "op": "GELU"}, {"id": "side", "op": "GELU"})",
                   R"(["x", "first.x"], ["first.y", "last.x"], ["x", "side.x"])", "last.y");
  std::vector<std::string> ids;
  const LoweredGraph lowered = lower(parseDocument(text).document);
  for (const Node& node : lowered.graph.nodes()) ids.push_back(node.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"first", "last", "side"}));
}

TEST(Lowering, KeepsThePartThatCanBeInferred) {
  const std::string text =
      pipelineText(R"({"id": "a", "op": "GELU"}, {"id": "b", "op": "Mystery"}, {"id": "c", "op": "GELU"})",
                   R"(["x", "a.x"], ["a.y", "b.anything"], ["b.result", "c.x"])", "c.y");
  const LoweredGraph lowered = lower(parseDocument(text).document);
  EXPECT_EQ(codes(lowered.diagnostics), std::vector<std::string>{"unknown-op"});
  ASSERT_EQ(lowered.graph.nodes().size(), 1U);
  EXPECT_EQ(lowered.graph.nodes().front().id, "a");
}

TEST(Lowering, AcceptsAnUnusedExtraOutput) {
  const std::string text =
      pipelineText(R"({"id": "save", "op": "MakeExtraOutput", "attributes": {}})", R"(["x", "save.x"])", "save.y");
  EXPECT_EQ(listed(problems(text)), "");
}

TEST(Lowering, SuggestsNamesOnlyForTheFirstUnknownOnes) {
  std::string wires;
  for (int i = 0; i < 3000; ++i)
    wires += std::string(i == 0 ? "" : ",") + "[\"ac" + std::to_string(i) + ".y\", \"act.x\"]";
  std::string ops = kGelu;
  for (int i = 0; i < 1000; ++i) ops += ",{\"id\": \"op" + std::to_string(i) + "\", \"op\": \"Mystery\"}";
  const std::vector<Diagnostic> found = problems(pipelineText(ops, wires, "act.y"));
  const auto numUnknown = std::ranges::count(found, "unknown-node", &Diagnostic::code);
  EXPECT_EQ(numUnknown, 3000);
}

}  // namespace
}  // namespace fuseline::testing
