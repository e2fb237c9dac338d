// Changes that are taken back: one alone gives the base's bytes again, and all of them leave no difference.
// SPDX-License-Identifier: Apache-2.0
#include "core/compare/take_back.h"

#include "core/compare/change_text.h"
#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/edit/renaming.h"
#include "core/lowering/connections.h"
#include "tests/support/example_texts.h"
#include "tests/support/random_edits.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

namespace fuseline::testing {
namespace {

using Changes = std::vector<DocumentChange>;

PipelineDocument afterEdit(PipelineDocument document, const Edit& edit) {
  const Result<Edit> applied = applyEdit(document, edit);
  EXPECT_TRUE(applied) << applied.error().message;
  return document;
}

/// Takes the only change back, or the first of this kind and id.
std::string textAfterTakingBack(const PipelineDocument& base, const PipelineDocument& next, DocumentChange::Kind kind,
                                const std::string& id) {
  const Changes changes = documentDifference(base, next);
  for (const DocumentChange& change : changes) {
    if (change.kind != kind || change.id != id) continue;
    const Result<Edit> edit = takeBack(base, next, changes, change);
    return edit ? serialize(afterEdit(next, *edit)) : edit.error().message;
  }
  return "there is no such change";
}

using Kind = DocumentChange::Kind;

/// x -> fc (Linear) -> act (GELU) -> fc2 (Linear) -> y, all with places.
PipelineDocument chainOfThree() {
  PipelineDocument document =
      parseDocument(pipelineText(R"({"id": "a", "op": "GELU", "attributes": {"n": 1}}, {"id": "b", "op": "ReLU"},
                                    {"id": "c", "op": "SiLU"})",
                                 R"(["x", "a.x"], ["a.y", "b.x"], ["b.y", "c.x"])", "c.y"))
          .document;
  int x = 0;
  for (const char* id : {"x", "a", "b", "c", "y"})
    EXPECT_TRUE(applyEdit(document, MoveNode{id, Position{x += 200, 0}}));
  return document;
}

TEST(TakeBack, OfAnAttributeGivesTheSameBytes) {
  const PipelineDocument base = chainOfThree();
  for (const Edit& edit : {Edit(SetAttribute{"a", "n", 2}), Edit(SetAttribute{"a", "n", nullptr}),
                           Edit(SetAttribute{"a", "m", 3}), Edit(SetBypassed{"a", true})})
    EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, edit), Kind::Changed, "a"), serialize(base)) << describe(edit);
}

TEST(TakeBack, OfARemovalPutsTheOpBackWithItsWires) {
  const PipelineDocument base = chainOfThree();
  for (const bool reconnect : {false, true})
    for (const char* id : {"a", "b", "c"})
      EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, removeOpWithWires(base, id, reconnect)), Kind::Removed, id),
                serialize(base))
          << id << reconnect;
}

TEST(TakeBack, RevertingAnAdditionReconnectsItsNeighbors) {
  const PipelineDocument base = chainOfThree();
  const Edit spliced =
      EditGroup{"",
                {AddOp{{.id = "n", .operation = "GELU"}}, RemoveWire{{{"a", "y"}, {"b", "x"}}},
                 AddWire{{{"a", "y"}, {"n", "x"}}}, AddWire{{{"n", "y"}, {"b", "x"}}}, MoveNode{"n", Position{8, 8}}}};
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, spliced), Kind::Added, "n"), serialize(base));
  const Edit atTheEnd = EditGroup{"",
                                  {AddOp{{.id = "n", .operation = "GELU"}}, AddWire{{{"c", "y"}, {"n", "x"}}},
                                   ReplaceOutput{"y", {.id = "y", .from = {"n", "y"}}}}};
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, atTheEnd), Kind::Added, "n"), serialize(base));
}

TEST(TakeBack, OfAnotherNameGivesTheOldOne) {
  const PipelineDocument base = chainOfThree();
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, RenameOp{"b", "other"}), Kind::Renamed, "b"), serialize(base));
  DocumentInput input = base.inputs().front();
  input.id = "z";
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, ReplaceInput{"x", input}), Kind::Renamed, "x"), serialize(base));
}

/// Whatever names the op or the port follows again.
TEST(TakeBack, RevertingARenameUpdatesReferences) {
  PipelineDocument base = chainOfThree();
  ASSERT_TRUE(
      applyEdit(base, SetRecipe{{{"name", "MXFP8BlockScaling"}, {"overrides", {{{"op", "b"}, {"gemm", "fprop"}}}}}}));
  ASSERT_TRUE(applyEdit(base, SetFusion{Json{{"without", {"R@b"}}}}));
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, renameNode(base, "b", "other")), Kind::Renamed, "b"),
            serialize(base));
  const PipelineDocument stack = example("transformer_stack");
  const std::string port = stack.findBlock("FeedForward")->inputs.front().id;
  EXPECT_EQ(textAfterTakingBack(stack, afterEdit(stack, renameInBlock(stack, "FeedForward", port, "other")),
                                Kind::Renamed, port),
            serialize(stack));
}

TEST(TakeBack, OfWiresInputsOutputsAndSymbolsGivesTheSameBytes) {
  const PipelineDocument base = chainOfThree();
  const Wire first{{"a", "y"}, {"b", "x"}};
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, RemoveWire{first}), Kind::Removed, "b.x"), serialize(base));
  const Edit rewired = EditGroup{"", {RemoveWire{first}, AddWire{{{"x", ""}, {"b", "x"}}}}};
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, rewired), Kind::Changed, "b.x"), serialize(base));
  const Edit added = AddWire{{{"x", ""}, {"c", "extra"}}};
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, added), Kind::Added, "c.extra"), serialize(base));
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, AddInput{{.id = "z", .shape = {1}}}), Kind::Added, "z"),
            serialize(base));
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, EditGroup{"", {RemoveOutput{"y"}, MoveNode{"y", {}}}}),
                                Kind::Removed, "y"),
            serialize(base));
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, ReplaceOutput{"y", {.id = "y", .from = {"a", "y"}}}),
                                Kind::Changed, "y"),
            serialize(base));
  const PipelineDocument llama = example("llama_mlp");
  for (const Json& value : {Json(8), Json(nullptr)})
    EXPECT_EQ(textAfterTakingBack(llama, afterEdit(llama, SetSymbol{"M", value}),
                                  value.is_null() ? Kind::Removed : Kind::Changed, "M"),
              serialize(llama));
  EXPECT_EQ(textAfterTakingBack(llama, afterEdit(llama, SetSymbol{"Q", 8}), Kind::Added, "Q"), serialize(llama));
}

TEST(TakeBack, OfRecipeFusionAndBlocksGivesTheSameBytes) {
  const PipelineDocument base = example("transformer_stack");
  ASSERT_FALSE(base.blocks().empty());
  const std::string name = base.blocks().front().first;
  EXPECT_EQ(
      textAfterTakingBack(base, afterEdit(base, SetRecipe{Json{{"name", "Float8BlockScaling"}}}), Kind::Changed, ""),
      serialize(base));
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, SetFusion{Json{{"rules", "te"}}}), Kind::Changed, ""),
            serialize(base));
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, AddBlock{"New", {}}), Kind::Added, "New"), serialize(base));
  const std::string inner = base.findBlock(name)->ops.front().id;
  const Edit inside = EditInBlock{name, {SetAttribute{inner, "mark", 7}}};
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, inside), Kind::Changed, inner), serialize(base));
}

TEST(TakeBack, OfTheOrderOfPortsGivesTheSameBytes) {
  DocumentBlock block;
  for (const char* id : {"p", "q", "r"}) block.inputs.push_back({.id = id});
  const PipelineDocument base = afterEdit(chainOfThree(), AddBlock{"Ports", block});
  std::swap(block.inputs[0], block.inputs[2]);
  EXPECT_EQ(textAfterTakingBack(base, afterEdit(base, ReplaceBlock{"Ports", block}), Kind::Changed, "Ports"),
            serialize(base));
}

TEST(TakeBack, RefusesUneditableParts) {
  const PipelineDocument base = chainOfThree();
  const PipelineDocument twice = afterEdit(base, AddOp{{.id = "a", .operation = "GELU"}, 0});
  EXPECT_EQ(textAfterTakingBack(base, twice, Kind::Added, "a"),
            "Several nodes have the id a. Rename one of them first.");
  const PipelineDocument used =
      afterEdit(afterEdit(base, AddBlock{"New", {}}), AddOp{{.id = "instance", .operation = "block:New"}});
  EXPECT_EQ(textAfterTakingBack(base, used, Kind::Added, "New"),
            "Block New is used by instance; expand or remove its instances first.");
  const std::string text = serialize(base);
  const PipelineDocument noted = parseDocument("{\"note\": 1, " + text.substr(1)).document;
  EXPECT_EQ(textAfterTakingBack(base, noted, Kind::Changed, ""),
            "This version does not know these fields, so it cannot edit them.");
}

TEST(TakeBack, OfAnInstanceBringsItsBlock) {
  const PipelineDocument chain = chainOfThree();
  const Result<NewBlock> made = makeBlock(chain, std::vector<std::string>{"b"}, "Inner");
  ASSERT_TRUE(made);
  const PipelineDocument base = afterEdit(chain, made->edit);
  PipelineDocument next = afterEdit(base, removeOpWithWires(base, made->instance));
  next = afterEdit(next, RemoveBlock{"Inner"});
  EXPECT_EQ(textAfterTakingBack(base, next, Kind::Removed, made->instance), serialize(base));
}

TEST(TakeBack, NamesTheObstacle) {
  const PipelineDocument base = chainOfThree();
  PipelineDocument next = afterEdit(base, removeOpWithWires(base, "a"));
  EXPECT_EQ(textAfterTakingBack(base, next, Kind::Removed, "b.x"),
            "a was an input of b.x and has been removed. Restore a first.");
  EXPECT_EQ(textAfterTakingBack(base, next, Kind::Removed, "a.x"), "a has been removed. Restore it first.");
  next = afterEdit(next, AddInput{{.id = "a", .shape = {1}}});
  EXPECT_EQ(textAfterTakingBack(base, next, Kind::Removed, "a"),
            "The id a is now used by another node. Rename or remove that node first.");
}

// ---- All changes, of arbitrary edits.

bool hasEqualIds(const DocumentBlock& block) {
  std::multiset<std::string> ids;
  for (const auto& input : block.inputs) ids.insert(input.id);
  for (const auto& op : block.ops) ids.insert(op.id);
  for (const auto& output : block.outputs) ids.insert(output.id);
  return std::ranges::any_of(ids, [&](const std::string& id) { return ids.count(id) > 1; });
}

bool hasEqualIds(const PipelineDocument& document) {
  return hasEqualIds(document.pipeline()) ||
         std::ranges::any_of(document.blocks(), [](const auto& entry) { return hasEqualIds(entry.second); });
}

/// Reverts all revertible changes until none can be reverted any more, or none is left.
PipelineDocument takenBack(const PipelineDocument& base, PipelineDocument next) {
  for (int round = 0; round < 200; ++round) {
    const Changes changes = documentDifference(base, next);
    const auto takesBack = [&](const DocumentChange& change) {
      const Result<Edit> edit = takeBack(base, next, changes, change);
      return edit && applyEdit(next, *edit);
    };
    if (std::ranges::none_of(changes, takesBack)) break;
  }
  return next;
}

std::string sentencesOf(const Changes& changes) {
  std::string text;
  for (const DocumentChange& change : changes) text += changeText(change) + "\n";
  return text;
}

TEST(TakeBackProperty, OfAllChangesLeavesNoDifference) {
  EXPECT_TRUE(rc::check([] {
    const PipelineDocument base = example(
        *rc::gen::element<std::string>("gpt_mlp", "residual_norm", "llama_mlp", "transformer_stack", "grouped_mlp"));
    PipelineDocument next = base;
    const int numEdits = *rc::gen::inRange(0, 8);
    for (int i = 0; i < numEdits; ++i) {
      PipelineDocument edited = next;
      // Nodes with equal ids are reported as such, and not reverted.
      if (applyEdit(edited, randomEditOrGroup(next)) && !hasEqualIds(edited)) next = std::move(edited);
    }
    const Changes left = documentDifference(base, takenBack(base, next));
    if (!left.empty()) RC_FAIL(sentencesOf(documentDifference(base, next)) + "left:\n" + sentencesOf(left));
  }));
}

TEST(TakeBackProperty, CanBeUndone) {
  EXPECT_TRUE(rc::check([] {
    const PipelineDocument base = randomStart();
    PipelineDocument next = base;
    const int numEdits = *rc::gen::inRange(1, 6);
    for (int i = 0; i < numEdits; ++i) (void)applyEdit(next, randomEditOrGroup(next));
    const Changes changes = documentDifference(base, next);
    for (const DocumentChange& change : changes) {
      PipelineDocument document = next;
      const Result<Edit> edit = takeBack(base, next, changes, change);
      if (!edit) continue;
      const Result<Edit> inverse = applyEdit(document, *edit);
      RC_ASSERT(static_cast<bool>(inverse));
      RC_ASSERT(static_cast<bool>(applyEdit(document, *inverse)));
      RC_ASSERT(serialize(document) == serialize(next));
    }
  }));
}

}  // namespace
}  // namespace fuseline::testing
