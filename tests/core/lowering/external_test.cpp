// External ops: their ports and shapes, their effect on the graph, and refusals.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/apply_edit.h"
#include "core/plan/analysis.h"
#include "tests/support/example_texts.h"

namespace fuseline::testing {
namespace {

using Texts = std::vector<std::string>;

/// x: [8, 16] bf16 -> a (GELU) -> mix (External) -> b (GELU) -> y.
PipelineDocument around(const std::string& attributes) {
  return parseDocument(pipelineText(R"({"id": "a", "op": "GELU"}, {"id": "mix", "op": "External", "attributes": {)" +
                                        attributes + R"(}}, {"id": "b", "op": "GELU"})",
                                    R"(["x", "a.x"], ["a.y", "mix.x"], ["mix.y", "b.x"])", "b.y"))
      .document;
}

std::string madeBy(const std::string& outputs) {
  const LoweredGraph lowered = lower(around("\"outputs\": \"" + outputs + "\""));
  const ValueId y = lowered.graph.findValue("mix.y");
  return y < 0 ? "" : toString(lowered.graph.value(y).spec);
}

Texts errorsOf(const PipelineDocument& document) {
  Texts messages;
  for (const Diagnostic& diagnostic : lower(document).diagnostics)
    if (diagnostic.severity == Severity::Error) messages.push_back(diagnostic.message);
  return messages;
}

TEST(External, CutsTheGraphUnderTheNamesOfItsPorts) {
  const LoweredGraph lowered = lower(around(""));
  EXPECT_FALSE(hasErrors(lowered.diagnostics));
  EXPECT_EQ(toString(lowered.graph),
            "input x [8, 16] bf16\ninput mix.y [8, 16] bf16\n"
            "a = GELU(x) -> a.y [8, 16] bf16\nb = GELU(mix.y) -> b.y [8, 16] bf16\n"
            "output mix.x = a.y\noutput y = b.y\n");
}

TEST(External, SaysOnceThatItIsNotRun) {
  const LoweredGraph lowered = lower(around(""));
  ASSERT_EQ(lowered.diagnostics.size(), 1U);
  EXPECT_EQ(lowered.diagnostics[0].code, "external");
  EXPECT_EQ(lowered.diagnostics[0].severity, Severity::Note);
}

TEST(External, GradientsArriveFromBothSides) {
  const Graph graph = lower(around("")).graph;
  for (const Node& node : graph.nodes()) EXPECT_TRUE(node.needs.anyInput()) << node.id;
  EXPECT_TRUE(graph.value(graph.findValue("mix.y")).needsGradient);
}

TEST(External, ShapesAreExpressionsOfExtents) {
  EXPECT_EQ(madeBy("y"), "[8, 16] bf16");
  EXPECT_EQ(madeBy("y = [x.1 / 4, x.0 * (2 + 1)]"), "[4, 24] bf16");
  EXPECT_EQ(madeBy("y = [5], lse = [x.0]"), "[5] bf16");
}

TEST(External, MayMakeAnotherDType) {
  EXPECT_EQ(madeBy("y, lse = [x.0] f32"), "[8, 16] bf16");
  EXPECT_EQ(madeBy("y = [x.0, 16] f32"), "[8, 16] f32");
  EXPECT_EQ(
      errorsOf(around(R"("outputs": "y = [x.0] fp8")")),
      Texts{"mix: outputs: the dtype of y is \"fp8\"; expected one of f32, f16, bf16, i64, or none, which is that "
            "of x."});
}

/// As an embedding reads tokens, and a router makes the counts of groups.
TEST(External, ReadsAndMakesCounts) {
  const PipelineDocument document =
      parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
        "inputs": [{"id": "ids", "dtype": "i64", "shape": [8]}],
        "ops": [{"id": "embed", "op": "External", "attributes": {"outputs": "y = [x.0, 16] bf16, n = [2] i64"}},
                {"id": "fc", "op": "GroupedLinear", "attributes": {"num_groups": 2, "in_features": 16, "out_features": 4}}],
        "wires": [["ids", "embed.x"], ["embed.y", "fc.x"], ["embed.n", "fc.split_sizes"]],
        "outputs": [{"id": "y", "from": "fc.y"}]}})")
          .document;
  const LoweredGraph lowered = lower(document);
  EXPECT_EQ(errorsOf(document), Texts{});
  EXPECT_EQ(toString(lowered.graph.value(lowered.graph.findValue("embed.n")).spec), "[2] i64");
}

TEST(External, ExtentsMayBeOfInputsWithDigitsInTheirNames) {
  const PipelineDocument document =
      parseDocument(pipelineText(R"({"id": "a", "op": "GELU"}, {"id": "mix", "op": "External",
        "attributes": {"inputs": "k1", "outputs": "y = [k1.1, x.0 * 2]"}}, {"id": "c", "op": "GELU"})",
                                 R"(["x", "a.x"], ["a.y", "mix.x"], ["a.y", "mix.k1"], ["mix.y", "c.x"])", "c.y"))
          .document;
  const Graph graph = lower(document).graph;
  EXPECT_EQ(toString(graph.value(graph.findValue("mix.y")).spec), "[16, 16] bf16");
}

TEST(External, ListsValidNamesForAnUnknownOne) {
  EXPECT_EQ(errorsOf(around(R"("outputs": "y = [x.0, FFFFF]")")),
            Texts{"mix: outputs: in \"FFFFF\", column 1: unknown name FFFFF; the names are x_0, x_1."});
}

/// The input must equal the output in shape and dtype, even though nothing runs.
TEST(External, IsBypassedOnlyWhereTheShapeStays) {
  PipelineDocument same = around("");
  ASSERT_TRUE(applyEdit(same, SetBypassed{"mix", true}));
  EXPECT_EQ(errorsOf(same), Texts{});
  PipelineDocument other = around(R"("outputs": "y = [x.0, 4]")");
  ASSERT_TRUE(applyEdit(other, SetBypassed{"mix", true}));
  ASSERT_EQ(errorsOf(other).size(), 1U);
  EXPECT_TRUE(errorsOf(other)[0].starts_with("mix is bypassed, but turns [8, 16] bf16 into [8, 4] bf16"))
      << errorsOf(other)[0];
}

TEST(External, ShapesMayHaveSymbols) { EXPECT_EQ(madeBy("y = [2 * F, x.1]"), "[64, 16] bf16"); }

TEST(External, RefusesShapesThatAreNone) {
  const auto errors = [](const std::string& outputs) { return errorsOf(around("\"outputs\": \"" + outputs + "\"")); };
  EXPECT_EQ(errors("y = [x.0 / 3]"),
            Texts{"mix: outputs: \"x.0 / 3\" is 2.6666666666666665; a dimension must be a whole number of 0 or more."});
  EXPECT_EQ(errors("y = x.0"), Texts{"mix: outputs: the shape of y is \"x.0\"; expected one in brackets, such as "
                                     "[x.0, 4096]."});
  EXPECT_EQ(errors("x"), Texts{"mix: outputs: x is already taken; choose another name."});
}

TEST(External, HasTheInputsThatItNames) {
  const PipelineDocument document =
      parseDocument(pipelineText(R"({"id": "a", "op": "GELU"}, {"id": "b", "op": "GELU"},
        {"id": "mix", "op": "External", "attributes": {"inputs": "k", "outputs": "y = [k.1]"}}, {"id": "c", "op": "GELU"})",
                                 R"(["x", "a.x"], ["x", "b.x"], ["a.y", "mix.x"], ["b.y", "mix.k"], ["mix.y", "c.x"])",
                                 "c.y"))
          .document;
  const Graph graph = lower(document).graph;
  EXPECT_EQ(toString(graph.value(graph.findValue("mix.y")).spec), "[16] bf16");
  EXPECT_EQ(graph.outputs().size(), 3U);
}

TEST(External, CannotBeTheLast) {
  const PipelineDocument document =
      parseDocument(pipelineText(R"({"id": "a", "op": "GELU"}, {"id": "mix", "op": "External"})",
                                 R"(["x", "a.x"], ["a.y", "mix.x"])", "mix.y"))
          .document;
  EXPECT_EQ(
      errorsOf(document),
      Texts{"Output y is mix.y, an output of mix, which is not executed. Put an op in between, or remove the output."});
}

TEST(External, NoFusionCrossesItAndTheReasonIsSaid) {
  const PipelineDocument document = parseDocument(pipelineText(R"({"id": "fc", "op": "Linear", "attributes":
      {"in_features": 16, "out_features": 16, "bias": false}}, {"id": "act", "op": "GELU"}, {"id": "mix", "op": "External"},
      {"id": "b", "op": "ConstantScale", "attributes": {"scale": 2.0}})",
                                                               R"(["x", "fc.x"], ["fc.y", "mix.x"], ["fc.y", "act.x"],
      ["mix.y", "b.x"])",
                                                               "act.y"))
                                        .document;
  const Analysis analysis = analyze(document);
  for (const auto* entries : {&analysis.report.forward, &analysis.report.backward})
    for (const FusedOperation& entry : *entries) EXPECT_FALSE(entry.isFused());
  bool isSaid = false;
  for (const auto& attempt : analysis.report.attempts)
    isSaid =
        isSaid || attempt.explanation.find("mix, which is not executed (no fusion crosses it)") != std::string::npos;
  EXPECT_TRUE(isSaid);
}

}  // namespace
}  // namespace fuseline::testing
