// Bypassed ops: their effect on the graph, where they are refused, and how they are kept in the file.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/apply_edit.h"
#include "core/plan/analysis.h"
#include "tests/support/example_texts.h"

namespace fuseline::testing {
namespace {

/// x: [8, 16] bf16 -> fc (Linear to `width`) -> scale -> act (GELU) -> y.
PipelineDocument chainOf(const char* width) {
  return parseDocument(pipelineText(R"({"id": "fc", "op": "Linear", "attributes": {"in_features": 16,
    "out_features": )" + std::string(width) +
                                        R"(, "bias": false}},
    {"id": "scale", "op": "ConstantScale", "attributes": {"scale": 2.0}},
    {"id": "act", "op": "GELU", "attributes": {}})",
                                    R"(["x", "fc.x"], ["fc.y", "scale.x"], ["scale.y", "act.x"])", "act.y"))
      .document;
}

/// A residual around fc.
PipelineDocument residual() {
  return parseDocument(
             pipelineText(R"({"id": "save", "op": "MakeExtraOutput", "attributes": {}},
    {"id": "fc", "op": "Linear", "attributes": {"in_features": 16, "out_features": 16, "bias": false}},
    {"id": "add", "op": "AddExtraInput", "attributes": {}})",
                          R"(["x", "save.x"], ["save.y", "fc.x"], ["fc.y", "add.x"], ["save.extra", "add.extra"])",
                          "add.y"))
      .document;
}

PipelineDocument bypassing(PipelineDocument document, std::initializer_list<const char*> ids) {
  for (const char* id : ids) EXPECT_TRUE(applyEdit(document, SetBypassed{id, true}));
  return document;
}

std::vector<std::string> nodesOf(const Graph& graph) {
  std::vector<std::string> ids;
  for (const Node& node : graph.nodes()) ids.push_back(node.id);
  return ids;
}

/// The messages of everything that is no warning.
std::vector<std::string> saidOf(const PipelineDocument& document, Severity severity) {
  std::vector<std::string> messages;
  for (const Diagnostic& diagnostic : lower(document).diagnostics)
    if (diagnostic.severity == severity) messages.push_back(diagnostic.message);
  return messages;
}

using Texts = std::vector<std::string>;

TEST(Bypass, HandsTheMainInputToTheReadersOfTheMainOutput) {
  const PipelineDocument document = bypassing(chainOf("16"), {"scale"});
  const LoweredGraph lowered = lower(document);
  EXPECT_FALSE(hasErrors(lowered.diagnostics));
  EXPECT_EQ(nodesOf(lowered.graph), (Texts{"fc", "act"}));
  EXPECT_EQ(lowered.graph.findValue("scale.y"), lowered.graph.findValue("fc.y"));
  EXPECT_EQ(saidOf(document, Severity::Note), Texts{"scale (ConstantScale) is bypassed: scale.y is fc.y."});
}

TEST(Bypass, FusionsArePlannedOverIt) {
  const PipelineDocument document =
      parseDocument(pipelineText(R"({"id": "act", "op": "GELU"}, {"id": "norm", "op": "L2Normalization"},
                      {"id": "scale", "op": "ConstantScale", "attributes": {"scale": 2.0}})",
                                 R"(["x", "act.x"], ["act.y", "norm.x"], ["norm.y", "scale.x"])", "scale.y"))
          .document;
  const auto firstEntry = [](const PipelineDocument& pipeline) {
    const Analysis analysis = analyze(pipeline);
    return toText(analysis.graph(), {analysis.report.forward.front()});
  };
  EXPECT_NE(firstEntry(document), firstEntry(bypassing(document, {"norm"})));
  EXPECT_NE(firstEntry(bypassing(document, {"norm"})).find("[act + scale]"), std::string::npos);
}

TEST(Bypass, RefusesAnOpThatMakesAnotherShape) {
  EXPECT_EQ(saidOf(bypassing(chainOf("32"), {"fc"}), Severity::Error),
            Texts{"fc is bypassed, but turns [8, 16] bf16 into [8, 32] bf16, so consumers of fc.y would get another "
                  "tensor; expected the same shape and dtype. Re-enable fc."});
}

TEST(Bypass, RefusesWhereAnExtraOutputIsRead) {
  EXPECT_EQ(saidOf(bypassing(residual(), {"save"}), Severity::Error),
            Texts{"save is bypassed, but add.extra still consumes save.extra. A bypassed op provides only its main "
                  "output. Bypass the consumer as well, or re-enable save."});
  const PipelineDocument both = bypassing(residual(), {"save", "add"});
  EXPECT_EQ(saidOf(both, Severity::Error), Texts{});
  EXPECT_EQ(nodesOf(lower(both).graph), Texts{"fc"});
}

TEST(Bypass, ExtraInputsAreNotRead) {
  PipelineDocument document = bypassing(residual(), {"add"});
  EXPECT_TRUE(analyze(document).isRunnable());
  ASSERT_TRUE(applyEdit(document, RemoveWire{{{"save", "extra"}, {"add", "extra"}}}));
  EXPECT_EQ(saidOf(document, Severity::Error), Texts{});
}

TEST(Bypass, LeavesNoPipelineThatHandsItsInputOut) {
  EXPECT_EQ(saidOf(bypassing(chainOf("16"), {"fc", "scale", "act"}), Severity::Error),
            Texts{"Output y is pipeline input x itself, because all ops in between are bypassed. Re-enable one of "
                  "them, or remove the output."});
}

TEST(Bypass, RepairsUseTheOpAgain) {
  PipelineDocument document = bypassing(chainOf("32"), {"fc"});
  const LoweredGraph lowered = lower(document);
  const auto error = std::ranges::find(lowered.diagnostics, Severity::Error, &Diagnostic::severity);
  ASSERT_NE(error, lowered.diagnostics.end());
  ASSERT_EQ(error->repairs.size(), 1U);
  EXPECT_EQ(error->repairs.front().label, "Re-enable fc");
  ASSERT_TRUE(applyEdit(document, error->repairs.front().edit));
  EXPECT_EQ(saidOf(document, Severity::Error), Texts{});
}

TEST(Bypass, WorksInsideBlocks) {
  const PipelineDocument document = parseDocument(R"({"format": "fuseline-pipeline",
    "formatVersion": {"major": 1, "minor": 2}, "blocks": {"B": {"inputs": [{"id": "x"}], "ops": [
      {"id": "scale", "op": "ConstantScale", "bypassed": true, "attributes": {"scale": 2.0}},
      {"id": "act", "op": "GELU", "attributes": {}}],
      "wires": [["x", "scale.x"], ["scale.y", "act.x"]], "outputs": [{"id": "y", "from": "act.y"}]}},
    "pipeline": {"inputs": [{"id": "x", "dtype": "bf16", "shape": [8, 16]}],
      "ops": [{"id": "one", "op": "block:B"}, {"id": "two", "op": "block:B", "bypassed": true},
              {"id": "three", "op": "block:B"}],
      "wires": [["x", "one.x"], ["one.y", "two.x"], ["two.y", "three.x"]],
      "outputs": [{"id": "y", "from": "three.y"}]}})")
                                        .document;
  EXPECT_EQ(saidOf(document, Severity::Error), Texts{});
  EXPECT_EQ(nodesOf(lower(document).graph), (Texts{"one.act", "three.act"}));
}

TEST(BypassFile, IsKeptAndRaisesTheMinorVersion) {
  PipelineDocument document = chainOf("16");
  const std::string before = serialize(document);
  const Result<Edit> inverse = applyEdit(document, SetBypassed{"scale", true});
  ASSERT_TRUE(inverse);
  const std::string text = serialize(document);
  EXPECT_NE(text.find(R"("minor": 2)"), std::string::npos);
  EXPECT_NE(text.find(R"({"id": "scale", "op": "ConstantScale", "bypassed": true, "attributes")"), std::string::npos);
  EXPECT_EQ(serialize(parseDocument(text).document), text);
  EXPECT_TRUE(parseDocument(text).diagnostics.empty());
  ASSERT_TRUE(applyEdit(document, *inverse));
  EXPECT_EQ(serialize(document), before);
}

TEST(BypassFile, KeepsInvalidValues) {
  const std::string text = serialize(chainOf("16"));
  for (const char* value : {"false", "\"yes\""}) {
    std::string other = text;
    const std::string op = R"("op": "GELU", )";
    other.replace(other.find(op), op.size(), op + "\"bypassed\": " + value + ", ");
    EXPECT_EQ(serialize(parseDocument(other).document), other);
  }
}

}  // namespace
}  // namespace fuseline::testing
