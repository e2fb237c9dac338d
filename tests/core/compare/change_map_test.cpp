// A drawing of a comparison: marks, ghosts, and wires that are removed or new.
// SPDX-License-Identifier: Apache-2.0
#include "core/compare/change_map.h"

#include "core/compare/change_text.h"
#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/lowering/connections.h"
#include "tests/support/example_texts.h"

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

using Kind = DocumentChange::Kind;

PipelineDocument threeOps() {
  return parseDocument(
             pipelineText(R"({"id": "a", "op": "GELU"}, {"id": "b", "op": "ReLU"}, {"id": "c", "op": "SiLU"})",
                          R"(["x", "a.x"], ["a.y", "b.x"], ["b.y", "c.x"])", "c.y"))
      .document;
}

struct Compared {
  std::vector<DocumentChange> changes;
  ChangeMap map;
};

Compared compared(const PipelineDocument& base, const Edit& edit) {
  PipelineDocument next = base;
  const Result<Edit> applied = applyEdit(next, edit);
  EXPECT_TRUE(applied) << applied.error().message;
  Compared result{.changes = documentDifference(base, next), .map = {}};
  result.map = changeMap(base, next, result.changes);
  return result;
}

TEST(ChangeMap, MarksExistingNodes) {
  const Compared result = compared(
      threeOps(),
      EditGroup{"", {SetAttribute{"a", "n", 1}, RenameOp{"b", "second"}, AddOp{{.id = "d", .operation = "GELU"}}}});
  ASSERT_EQ(result.map.marks.size(), 3u);
  EXPECT_EQ(result.map.marks.at("a").kind, Kind::Changed);
  EXPECT_EQ(result.map.marks.at("second").kind, Kind::Renamed);
  EXPECT_EQ(result.map.marks.at("d").kind, Kind::Added);
  EXPECT_EQ(result.changes[result.map.marks.at("d").change].id, "d");
  EXPECT_TRUE(result.map.ghosts.empty());
  EXPECT_TRUE(result.map.goneLinks.empty());  // those of the renamed op are the same ones
  EXPECT_TRUE(result.map.newLinks.empty());
}

TEST(ChangeMap, HasGhostsWithTheirWires) {
  const PipelineDocument base = threeOps();
  const Compared result = compared(base, EditGroup{"", {removeOpWithWires(base, "b", true), RenameOp{"a", "first"}}});
  ASSERT_EQ(result.map.ghosts.size(), 1u);
  EXPECT_EQ(result.map.ghosts[0].id, "b");
  EXPECT_EQ(result.map.ghosts[0].baseNeighbour, "a");
  EXPECT_EQ(result.map.ghosts[0].neighbour, "first");
  const std::vector<ChangeMap::Gone> expected = {{{{"first", "y"}, false}, {{"b", "x"}, true}},
                                                 {{{"b", "y"}, true}, {{"c", "x"}, false}}};
  EXPECT_EQ(result.map.goneLinks, expected);
  EXPECT_EQ(result.map.newLinks, (std::vector<Wire>{{{"first", "y"}, {"c", "x"}}}));
}

TEST(ChangeMap, FindsANeighbourBeyondOtherGhosts) {
  const PipelineDocument base = threeOps();
  const Compared result = compared(
      base, EditGroup{"", {removeOpWithWires(base, "a"), RemoveWire{{{"b", "y"}, {"c", "x"}}}, RemoveOp{"b"}}});
  ASSERT_EQ(result.map.ghosts.size(), 2u);
  for (const ChangeMap::Ghost& ghost : result.map.ghosts) EXPECT_EQ(ghost.neighbour, "x");
  // The wire between both ghosts is gone, too.
  EXPECT_TRUE(std::ranges::any_of(result.map.goneLinks,
                                  [](const ChangeMap::Gone& gone) { return gone.from.isGhost && gone.to.isGhost; }));
}

TEST(ChangeMap, OfAnOutputThatReadsSomethingElseHasBothLinks) {
  const Compared result = compared(threeOps(), ReplaceOutput{"y", {.id = "y", .from = {"b", "y"}}});
  EXPECT_EQ(result.map.goneLinks, (std::vector<ChangeMap::Gone>{{{{"c", "y"}, false}, {{"y", ""}, false}}}));
  EXPECT_EQ(result.map.newLinks, (std::vector<Wire>{{{"b", "y"}, {"y", ""}}}));
  EXPECT_EQ(result.map.marks.at("y").kind, Kind::Changed);
}

TEST(ChangeMap, MarksInstancesOfBlocksThatChangedInside) {
  PipelineDocument base = threeOps();
  const Result<NewBlock> made = makeBlock(base, std::vector<std::string>{"b"}, "Inner");
  ASSERT_TRUE(made && applyEdit(base, made->edit));
  const Compared result = compared(base, EditInBlock{"Inner", {SetAttribute{"b", "n", 1}}});
  ASSERT_TRUE(result.map.marks.contains(made->instance));
  EXPECT_EQ(result.changes[result.map.marks.at(made->instance).change].block, "Inner");
}

TEST(ChangeText, SaysSignNameAndFields) {
  const DocumentChange changed{.section = DocumentChange::Section::Ops,
                               .block = {},
                               .kind = Kind::Changed,
                               .id = "norm",
                               .newId = {},
                               .fields = {{"eps", "1e-05", "1e-06"}, {"bias", "", "true"}}};
  EXPECT_EQ(changeText(changed), "~ norm  eps 1e-05 -> 1e-06, bias - -> true");
  DocumentChange renamed = changed;
  renamed.kind = Kind::Renamed;
  renamed.newId = "first";
  renamed.fields.clear();
  EXPECT_EQ(changeText(renamed), "> norm  -> first");
}

}  // namespace
}  // namespace fuseline::testing
