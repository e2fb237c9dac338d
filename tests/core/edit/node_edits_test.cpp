// Edits of nodes: their effects on a document, and undo restores the document.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/node_edits.h"

#include "core/edit/block_edits.h"
#include "core/edit/edit_script.h"
#include "core/edit/view_grid.h"
#include "tests/core/edit/edit_scene.h"
#include "tests/core/edit/has_link.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

TEST(NodeEdits, InsertsAfterAnOpAndTakesOverItsConsumers) {
  EditScene s;
  const NodeEdit added = insertAfter(s.document(), s.graph(), "Identity", "norm");
  ASSERT_TRUE(appliesAndUndoes(s.history, added.edit));
  ASSERT_TRUE(hasLink(s.document(), "norm.y", "identity.x"));
  ASSERT_TRUE(hasLink(s.document(), "identity.y", "fc.x"));
  ASSERT_FALSE(hasLink(s.document(), "norm.y", "fc.x"));
}

TEST(NodeEdits, GuessesRequiredAttributesFromTheIncomingWidth) {
  EditScene s;
  const NodeEdit added = insertAfter(s.document(), s.graph(), "LayerNorm", "norm");
  ASSERT_TRUE(s.history.apply(added.edit));
  const DocumentOp* op = s.document().findOp(added.id);
  ASSERT_TRUE(op);
  EXPECT_EQ(op->attributes.at("normalized_shape").dump(), std::string(R"(["H"])"));
}

TEST(NodeEdits, SplicesIntoAWire) {
  EditScene s;
  const auto wire = linkInto(s.document(), {"act", "x"});
  ASSERT_TRUE(wire.has_value());
  const NodeEdit added = splice(s.document(), s.graph(), "Identity", *wire, Position{8, 8});
  ASSERT_TRUE(appliesAndUndoes(s.history, added.edit));
  ASSERT_TRUE(hasLink(s.document(), "fc.y", "identity.x"));
  ASSERT_TRUE(hasLink(s.document(), "identity.y", "act.x"));
}

TEST(NodeEdits, ReplacesAWireIntoATakenInput) {
  EditScene s;
  const Endpoint from{"x", ""};
  const Endpoint to{"fc", "x"};
  ASSERT_TRUE(linkVerdict(s.document(), from, to));
  ASSERT_TRUE(appliesAndUndoes(s.history, linkEdit(s.document(), from, to)));
  ASSERT_TRUE(hasLink(s.document(), "x", "fc.x"));
  ASSERT_FALSE(hasLink(s.document(), "norm.y", "fc.x"));
}

TEST(NodeEdits, AddsBesideWithoutTakingOverConsumers) {
  EditScene s;
  ASSERT_TRUE(appliesAndUndoes(s.history, addBeside(s.document(), s.graph(), "GELU", "norm", {8, 8}).edit));
  EXPECT_TRUE(hasLink(s.document(), "norm.y", "gelu.x"));
  EXPECT_TRUE(hasLink(s.document(), "norm.y", "fc.x"));
  ASSERT_TRUE(appliesAndUndoes(s.history, addBeside(s.document(), s.graph(), "Linear", "act", {8, 8}).edit));
  EXPECT_TRUE(hasLink(s.document(), "linear.y", "y"));  // an output follows the end of its chain
  EXPECT_EQ(s.document().findOp("linear")->attributes.at("in_features"), 64);
}

TEST(NodeEdits, ANewPipelineTakesOpsBetweenItsEnds) {
  History history{newPipeline()};
  for (const char* entry : {"LayerNorm", "Linear", "GELU"})
    ASSERT_TRUE(history.apply(insertAfter(history.document(), lower(history.document()).graph, entry, {}).edit));
  EXPECT_TRUE(hasLink(history.document(), "gelu.y", "y"));
  int left = -1;
  for (const char* id : {"x", "layernorm", "linear", "gelu", "y"}) {
    const std::optional<Position> place = positionOf(history.document().pipeline(), id);
    ASSERT_TRUE(place && place->x > left && place->y == 0) << id;
    left = place->x;
  }
  EXPECT_FALSE(hasErrors(lower(history.document()).diagnostics));
}

TEST(NodeEdits, RefusesACycleWithASentence) {
  EditScene s;
  const Verdict verdict = linkVerdict(s.document(), {"act", "y"}, {"norm", "x"});
  ASSERT_FALSE(verdict);
  EXPECT_NE(verdict.reason().find("cycle"), std::string::npos) << verdict.reason();
}

TEST(NodeEdits, WarnsOfAShapeThatDoesNotFit) {
  EditScene s;
  ASSERT_TRUE(linkWarning(s.document(), {"x", ""}, {"fc", "x"}).empty());
  ASSERT_TRUE(s.history.apply(SetAttribute{.id = "norm", .name = "normalized_shape", .value = Json::array({7})}));
  ASSERT_TRUE(s.history.apply(RemoveWire{.wire = {{"x", ""}, {"norm", "x"}}}));
  const std::string warning = linkWarning(s.document(), {"x", ""}, {"norm", "x"});
  EXPECT_NE(warning.find("32"), std::string::npos) << warning;
}

/// norm, fc and an extra lane stand in one row of the view, act and y far below in the next one.
TEST(NodeEdits, AnInsertedOpMovesTheNodesOfItsRow) {
  EditScene s;
  const std::vector<std::pair<std::string, Position>> before = {{"x", {0, 0}},
                                                                {"norm", {kNodePitchPx, 0}},
                                                                {"fc", {2 * kNodePitchPx, 120}},
                                                                {"act", {kNodePitchPx, 480}},
                                                                {"y", {2 * kNodePitchPx, 480}}};
  for (const auto& [id, place] : before) ASSERT_TRUE(s.history.apply(MoveNode{.id = id, .position = place}));
  ASSERT_TRUE(s.history.apply(insertAfter(s.document(), s.graph(), "GELU", "x").edit));
  std::map<std::string, Position> after(s.document().positions().begin(), s.document().positions().end());
  EXPECT_EQ(after.at("norm").x, 2 * kNodePitchPx);
  EXPECT_EQ(after.at("fc").x, 3 * kNodePitchPx);
  EXPECT_EQ(after.at("act").x, kNodePitchPx);
  EXPECT_EQ(after.at("y").x, 2 * kNodePitchPx);
}

TEST(NodeEdits, ReplacesAnOpAndKeepsItsWires) {
  EditScene s;
  const auto edit = replaceOp(s.document(), s.graph(), "norm", "LayerNorm");
  ASSERT_TRUE(edit);
  ASSERT_TRUE(appliesAndUndoes(s.history, *edit));
  const DocumentOp& norm = *s.document().findOp("norm");
  EXPECT_EQ(norm.operation, std::string("LayerNorm"));
  EXPECT_EQ(norm.attributes["normalized_shape"], s.document().findOp("norm")->attributes["normalized_shape"]);
  ASSERT_TRUE(hasLink(s.document(), "x", "norm.x") && hasLink(s.document(), "norm.y", "fc.x"));
  ASSERT_FALSE(hasErrors(lower(s.document()).diagnostics));
  EXPECT_EQ(s.document().ops().front().id, std::string("norm"));  // its place in the file
}

/// The extra output of MakeExtraOutput is read, and no GELU has one.
TEST(NodeEdits, ReplacingNamesTheLostParts) {
  const PipelineDocument document = parseDocument(residualPipeline(false)).document;
  const Graph graph = lower(document).graph;
  const auto edit = replaceOp(document, graph, "save", "GELU");
  ASSERT_FALSE(edit);
  EXPECT_EQ(edit.error().message, std::string("GELU has no port for the wire from save.extra to add.extra."));
  ASSERT_FALSE(replaceOp(document, graph, "fc", "NoSuchOp"));
  // The main input a would go to x, which already has a wire.
  const PipelineDocument two =
      parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 1},
    "blocks": {"Two": {"inputs": [{"id": "a"}, {"id": "x"}],
                       "ops": [{"id": "add", "op": "AddExtraInput", "attributes": {}}],
                       "wires": [["a", "add.x"], ["x", "add.extra"]], "outputs": [{"id": "y", "from": "add.y"}]}},
    "pipeline": {"inputs": [{"id": "in", "dtype": "bf16", "shape": [8, 8]}],
                 "ops": [{"id": "two", "op": "block:Two", "attributes": {}}],
                 "wires": [["in", "two.a"], ["in", "two.x"]], "outputs": [{"id": "y", "from": "two.y"}]}})")
          .document;
  const auto merged = replaceOp(two, lower(two).graph, "two", "GELU");
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().message, std::string("GELU has no port for the wire from in to two.x."));
  ASSERT_FALSE(replaceOp(document, graph, "nothing", "GELU"));
}

TEST(NodeEdits, RepeatsAnOpInARow) {
  EditScene s;
  const auto row = repeatOp(s.document(), "act", 3);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->ids, (std::vector<std::string>{"act", "act2", "act3"}));
  ASSERT_TRUE(appliesAndUndoes(s.history, row->edit));
  ASSERT_TRUE(hasLink(s.document(), "fc.y", "act.x") && hasLink(s.document(), "act.y", "act2.x") &&
              hasLink(s.document(), "act2.y", "act3.x") && hasLink(s.document(), "act3.y", "y"));
  ASSERT_FALSE(hasLink(s.document(), "act.y", "y"));
  ASSERT_FALSE(hasErrors(lower(s.document()).diagnostics));
}

/// layer2 is taken; its place in the row is after the new ones.
TEST(NodeEdits, RepeatsABlock) {
  History history{parseDocument(findTemplate("transformer-stack")->text).document};
  const auto row = repeatOp(history.document(), "layer1", 3);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->ids, (std::vector<std::string>{"layer1", "layer3", "layer4"}));
  ASSERT_TRUE(appliesAndUndoes(history, row->edit));
  ASSERT_TRUE(hasLink(history.document(), "layer4.y", "layer2.x"));
  EXPECT_EQ(history.document().findOp("layer4")->operation, std::string("block:Layer"));
  const auto& positions = history.document().positions();
  std::set<std::pair<int, int>> places;
  for (const auto& [id, place] : positions) places.insert({place.x, place.y});
  ASSERT_TRUE(places.size() == positions.size()) << "no node lies on another";
  ASSERT_FALSE(hasErrors(lower(history.document()).diagnostics));
}

TEST(NodeEdits, RepeatingNeedsOneInputAndOneOutput) {
  const PipelineDocument document = parseDocument(residualPipeline(false)).document;
  const auto save = repeatOp(document, "save", 2);
  ASSERT_FALSE(save);
  EXPECT_EQ(save.error().message,
            std::string("save.extra also has a consumer. Only ops with a single connected output can be repeated."));
  const auto add = repeatOp(document, "add", 2);
  ASSERT_FALSE(add);
  ASSERT_TRUE(add.error().message.starts_with("add also consumes save.extra")) << add.error().message;
  ASSERT_FALSE(repeatOp(document, "x", 2));
}

TEST(NodeEdits, RemovesAndReconnects) {
  EditScene s;
  ASSERT_TRUE(appliesAndUndoes(s.history, removeNodes(s.document(), {"fc"}, {}, Reconnect::Yes)));
  ASSERT_FALSE(s.document().findOp("fc"));
  ASSERT_TRUE(hasLink(s.document(), "norm.y", "act.x"));
}

TEST(NodeEdits, RemovesAnInputWithItsWires) {
  EditScene s;
  ASSERT_TRUE(appliesAndUndoes(s.history, removeNodes(s.document(), {"x"}, {}, Reconnect::No)));
  ASSERT_TRUE(s.document().inputs().empty());
  ASSERT_FALSE(linkInto(s.document(), {"norm", "x"}));
}

TEST(NodeEdits, InsertsAnInstanceOfABlock) {
  EditScene s;
  ASSERT_TRUE(s.history.apply(makeBlock(s.document(), std::vector<std::string>{"act"}, "Act")->edit));
  const NodeEdit added = insertAfter(s.document(), lower(s.document()).graph, "block:Act", "act");
  EXPECT_EQ(added.id, std::string("act2"));
  ASSERT_TRUE(appliesAndUndoes(s.history, added.edit));
  ASSERT_TRUE(hasLink(s.document(), "act.y", "act2.x"));
  ASSERT_TRUE(hasLink(s.document(), "act2.y", "y"));
}

}  // namespace
}  // namespace fuseline::testing
