// The written order: the same pipeline, edited in any order, is the same text.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/canonical_order.h"

#include "core/document/file_format.h"
#include "core/lowering/lowering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <ranges>

namespace fuseline {
namespace {

std::vector<Edit> gatedEdits() {
  return {AddInput{.input = {.id = "x", .dtype = "bf16", .shape = {64, 32}}},
          AddOp{.op = {.id = "gate", .operation = "Linear", .attributes = {{"in_features", 32}, {"out_features", 64}}}},
          AddOp{.op = {.id = "down", .operation = "Linear", .attributes = {{"in_features", 64}, {"out_features", 32}}}},
          AddOp{.op = {.id = "act", .operation = "GELU"}},
          AddOp{.op = {.id = "sum", .operation = "AddExtraInput"}},
          AddOutput{.output = {.id = "y", .from = {"sum", "y"}}}};
}

std::vector<Edit> wireEdits() {
  std::vector<Edit> edits;
  const std::pair<Endpoint, Endpoint> wires[] = {{{"x", ""}, {"gate", "x"}},
                                                 {{"gate", "y"}, {"act", "x"}},
                                                 {{"act", "y"}, {"down", "x"}},
                                                 {{"down", "y"}, {"sum", "x"}},
                                                 {{"x", ""}, {"sum", "residual"}}};
  for (const auto& [from, to] : wires) edits.push_back(AddWire{{from, to}});
  return edits;
}

std::string savedAfter(const std::vector<Edit>& nodes, const std::vector<Edit>& wires) {
  History history;
  for (const auto* edits : {&nodes, &wires})
    for (const Edit& edit : *edits) EXPECT_TRUE(history.apply(edit));
  return serialize(documentToSave(history));
}

std::vector<std::string> idsIn(const PipelineDocument& document) {
  std::vector<std::string> ids;
  for (const DocumentOp& op : document.ops()) ids.push_back(op.id);
  return ids;
}

TEST(CanonicalOrder, IsThatOfTheDataWhateverTheOrderOfEdits) {
  std::vector<Edit> nodes = gatedEdits();
  std::vector<Edit> wires = wireEdits();
  const std::string expected = savedAfter(nodes, wires);
  EXPECT_EQ(idsIn(parseDocument(expected).document), (std::vector<std::string>{"gate", "act", "down", "sum"}));
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::ranges::shuffle(nodes, random);
    std::ranges::shuffle(wires, random);
    EXPECT_EQ(savedAfter(nodes, wires), expected);
  }
}

TEST(CanonicalOrder, WritesAttributesAsTheOpDeclaresThem) {
  History history;
  ASSERT_TRUE(history.apply(AddOp{.op = {.id = "fc", .operation = "Linear"}}));
  for (const char* name : {"later", "bias", "out_features", "in_features"})
    ASSERT_TRUE(history.apply(SetAttribute{.id = "fc", .name = name, .value = 1}));
  std::vector<std::string> names;
  const PipelineDocument saved = documentToSave(history);
  for (const auto& [name, value] : saved.findOp("fc")->attributes.items()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"in_features", "out_features", "bias", "later"}));
}

TEST(CanonicalOrder, KeepsAllPartsOfWrongPipelines) {
  const LoadedDocument wrong = parseDocument(
      R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
          "inputs": [], "outputs": [{"id": "y", "from": "nowhere.y"}],
          "ops": [{"id": "b", "op": "GELU"}, {"id": "a", "op": "Unheard"}, {"id": "a", "op": "GELU"}],
          "wires": [["b.y", "a.x"], ["a.y", "b.x"], ["ghost.y", "void.x"]]}})");
  const PipelineDocument sorted = inCanonicalOrder(wrong.document);
  EXPECT_EQ(sorted.ops().size(), 3U);
  EXPECT_EQ(sorted.wires().size(), 3U);
  EXPECT_EQ(inCanonicalOrder(sorted), sorted);
}

TEST(CanonicalOrder, OfOpsIsThatOfEveryTemplate) {
  for (const DocumentTemplate& each : documentTemplates()) {
    const PipelineDocument document = parseDocument(each.text).document;
    EXPECT_EQ(idsIn(inCanonicalOrder(document)), idsIn(document)) << each.name;
  }
}

TEST(CanonicalOrder, LeavesFilesAloneThatWereOnlyOpened) {
  const std::string text = savedAfter(gatedEdits(), wireEdits());
  PipelineDocument opened = parseDocument(text).document;
  History unsorted(std::move(opened));
  ASSERT_TRUE(unsorted.apply(AddOp{.op = {.id = "alone", .operation = "GELU"}, .index = 0}));
  const History reopened(unsorted.document());
  EXPECT_EQ(documentToSave(reopened), unsorted.document());
  EXPECT_NE(documentToSave(unsorted), unsorted.document());
}

}  // namespace
}  // namespace fuseline
