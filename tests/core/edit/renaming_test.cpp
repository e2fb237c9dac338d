// Renaming: every reference to the op follows, and undo restores the same bytes.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/renaming.h"

#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

PipelineDocument documentWith(const std::string& sections) {
  LoadedDocument loaded = parseDocument(fmt::format(
      R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}},
           "pipeline": {{"inputs": [{{"id": "x", "dtype": "bf16", "shape": [32, 32]}}],
             "ops": [{{"id": "fc", "op": "BasicLinear", "attributes": {{"in_features": 32, "out_features": 32}}}},
                     {{"id": "fc2", "op": "BasicLinear", "attributes": {{"in_features": 32, "out_features": 32}}}}],
             "wires": [["x", "fc.x"], ["fc.y", "fc2.x"]], "outputs": [{{"id": "y", "from": "fc2.y"}}]}}{}}})",
      sections));
  EXPECT_FALSE(hasErrors(loaded.diagnostics));
  return std::move(loaded.document);
}

TEST(Renaming, TakesOverridesAndSwitchesAlong) {
  PipelineDocument document = documentWith(
      R"(, "recipe": {"name": "Float8CurrentScaling", "overrides": [
             {"op": "fc", "gemm": "wgrad", "format": "high_precision"}, {"op": "fc2", "format": "high_precision"},
             {"op": "fc.inner", "format": "high_precision"}, {"gemm": "dgrad", "format": "high_precision"}]},
           "fusion": {"rules": "all", "without": ["ForwardLinearEpilogue@fc", "ForwardAddNorm"],
                      "with": ["ForwardLinearEpilogue@fc2", "ForwardLinearEpilogue@fc.inner"]})");
  const std::string before = serialize(document);
  const Result<Edit> undo = applyEdit(document, renameNode(document, "fc", "project"));
  ASSERT_TRUE(undo) << undo.error().message;
  EXPECT_TRUE(document.findOp("project"));
  const Json& overrides = document.recipe()["overrides"];
  EXPECT_EQ(overrides[0]["op"], "project");
  EXPECT_EQ(overrides[1]["op"], "fc2") << "it only begins with the same letters";
  EXPECT_EQ(overrides[2]["op"], "project.inner");
  EXPECT_FALSE(overrides[3].contains("op"));
  EXPECT_EQ(document.fusion()["without"], Json({"ForwardLinearEpilogue@project", "ForwardAddNorm"}));
  EXPECT_EQ(document.fusion()["with"], Json({"ForwardLinearEpilogue@fc2", "ForwardLinearEpilogue@project.inner"}));
  ASSERT_TRUE(applyEdit(document, *undo));
  EXPECT_EQ(serialize(document), before);
}

TEST(Renaming, IsAPlainEditWhereNothingElseNamesTheOp) {
  const PipelineDocument document = documentWith("");
  EXPECT_TRUE(std::holds_alternative<RenameOp>(renameNode(document, "fc", "project")));
  EXPECT_TRUE(std::holds_alternative<ReplaceInput>(renameNode(document, "x", "tokens")));
  EXPECT_TRUE(std::holds_alternative<ReplaceOutput>(renameNode(document, "y", "result")));
}

TEST(Renaming, ChangesNothingWhereTheIdIsTaken) {
  PipelineDocument document = documentWith(R"(, "fusion": {"without": ["ForwardLinearEpilogue@fc"]})");
  const std::string before = serialize(document);
  EXPECT_FALSE(applyEdit(document, renameNode(document, "fc", "fc2")));
  EXPECT_EQ(serialize(document), before);
}

/// outer (Outer: inner) and inner, both of them instances of Inner (fc).
PipelineDocument nestedDocument() {
  LoadedDocument loaded = parseDocument(
      R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 1},
          "blocks": {"Inner": {"inputs": [{"id": "x"}], "outputs": [{"id": "y", "from": "fc.y"}], "wires": [["x", "fc.x"]],
                       "ops": [{"id": "fc", "op": "BasicLinear", "attributes": {"in_features": 32, "out_features": 32}}]},
                     "Outer": {"inputs": [{"id": "x"}], "outputs": [{"id": "y", "from": "inner.y"}],
                       "wires": [["x", "inner.x"]], "ops": [{"id": "inner", "op": "block:Inner", "attributes": {}}]}},
          "pipeline": {"inputs": [{"id": "x", "dtype": "bf16", "shape": [32, 32]}],
            "ops": [{"id": "outer", "op": "block:Outer", "attributes": {}},
                    {"id": "inner", "op": "block:Inner", "attributes": {}}],
            "wires": [["x", "outer.x"], ["outer.y", "inner.x"]], "outputs": [{"id": "y", "from": "inner.y"}]},
          "recipe": {"name": "Float8CurrentScaling", "overrides": [
            {"op": "outer.inner.fc", "format": "high_precision"}, {"op": "inner.fc", "format": "high_precision"},
            {"op": "inner", "format": "high_precision"}, {"op": "fc", "format": "high_precision"}]},
          "fusion": {"without": ["ForwardLinearEpilogue@outer.inner.fc"]}})");
  return std::move(loaded.document);
}

TEST(RenamingInBlock, TakesPlacesInAllInstancesAlong) {
  PipelineDocument document = nestedDocument();
  const std::string before = serialize(document);
  const Result<Edit> undo = applyEdit(document, renameInBlock(document, "Inner", "fc", "project"));
  ASSERT_TRUE(undo) << undo.error().message;
  EXPECT_EQ(document.findBlock("Inner")->ops.front().id, "project");
  const Json& overrides = document.recipe()["overrides"];
  EXPECT_EQ(overrides[0]["op"], "outer.inner.project");
  EXPECT_EQ(overrides[1]["op"], "inner.project");
  EXPECT_EQ(overrides[2]["op"], "inner");
  EXPECT_EQ(overrides[3]["op"], "fc") << "it is no op of the block";
  EXPECT_EQ(document.fusion()["without"], Json({"ForwardLinearEpilogue@outer.inner.project"}));
  ASSERT_TRUE(applyEdit(document, *undo));
  EXPECT_EQ(serialize(document), before);
}

TEST(RenamingInBlock, TakesTheWiresOfAPortAlong) {
  PipelineDocument document = nestedDocument();
  const std::string before = serialize(document);
  PipelineDocument inputs = document;
  ASSERT_TRUE(applyEdit(inputs, renameInBlock(inputs, "Inner", "x", "tokens")));
  EXPECT_EQ(inputs.wires().back(), (Wire{{"outer", "y"}, {"inner", "tokens"}}));
  EXPECT_EQ(inputs.findBlock("Outer")->wires.front(), (Wire{{"x", ""}, {"inner", "tokens"}}));
  const Result<Edit> undo = applyEdit(document, renameInBlock(document, "Inner", "y", "result"));
  ASSERT_TRUE(undo) << undo.error().message;
  EXPECT_EQ(document.outputs().front().from, (Endpoint{"inner", "result"}));
  EXPECT_EQ(document.findBlock("Outer")->outputs.front().from, (Endpoint{"inner", "result"}));
  EXPECT_EQ(document.wires().back(), (Wire{{"outer", "y"}, {"inner", "x"}})) << "a port of another block";
  ASSERT_TRUE(applyEdit(document, *undo));
  EXPECT_EQ(serialize(document), before);
}

}  // namespace
}  // namespace fuseline
