// Edits on documents: exact inverses for any edits, on right and wrong documents; refusals change nothing.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/edit/history.h"
#include "core/lowering/connections.h"
#include "tests/support/example_texts.h"
#include "tests/support/random_edits.h"

#include <rapidcheck.h>

#include <cmath>

namespace fuseline::testing {
namespace {

TEST(EditProperty, AnyEditsUndoneGiveBackTheSameBytes) {
  EXPECT_TRUE(rc::check([] {
    PipelineDocument document = randomStart();
    const PipelineDocument original = document;
    const std::string before = serialize(document);
    std::vector<Edit> inverses;
    const int numEdits = *rc::gen::inRange(0, 30);
    for (int i = 0; i < numEdits; ++i)
      if (Result<Edit> inverse = applyEdit(document, randomEditOrGroup(document))) inverses.push_back(*inverse);
    const std::string after = serialize(document);
    const PipelineDocument edited = document;

    std::vector<Edit> redos;
    for (auto inverse = inverses.rbegin(); inverse != inverses.rend(); ++inverse) {
      Result<Edit> redo = applyEdit(document, *inverse);
      RC_ASSERT(redo.hasValue());
      redos.push_back(*redo);
    }
    RC_ASSERT(document == original);
    RC_ASSERT(serialize(document) == before);
    for (auto redo = redos.rbegin(); redo != redos.rend(); ++redo) RC_ASSERT(applyEdit(document, *redo).hasValue());
    RC_ASSERT(document == edited);
    RC_ASSERT(serialize(document) == after);
  }));
}

TEST(EditProperty, ARefusedEditChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    PipelineDocument document = randomStart();
    const PipelineDocument before = document;
    const Edit edit = randomEditOrGroup(document);
    const Result<Edit> inverse = applyEdit(document, edit);
    if (inverse) return;
    RC_ASSERT(!inverse.error().message.empty());
    RC_ASSERT(document == before);
  }));
}

TEST(EditProperty, WrittenDocumentsAreReadBackEqual) {
  EXPECT_TRUE(rc::check([] {
    PipelineDocument document = randomStart();
    const int numEdits = *rc::gen::inRange(0, 20);
    for (int i = 0; i < numEdits; ++i) (void)applyEdit(document, randomEditOrGroup(document));
    const std::string text = serialize(document);
    RC_ASSERT(serialize(parseDocument(text).document) == text);
  }));
}

TEST(EditProperty, HistoryUndoesAndRedoesMergedEdits) {
  EXPECT_TRUE(rc::check([] {
    History history(randomStart());
    const std::string before = serialize(history.document());
    const int numEdits = *rc::gen::inRange(0, 20);
    for (int i = 0; i < numEdits; ++i)
      (void)history.apply(randomEditOrGroup(history.document()), *rc::gen::element<std::string>("", "drag", "type"));
    const std::string after = serialize(history.document());
    while (history.canUndo()) history.undo();
    RC_ASSERT(serialize(history.document()) == before);
    RC_ASSERT(!history.isModified());
    while (history.canRedo()) history.redo();
    RC_ASSERT(serialize(history.document()) == after);
  }));
}

/// Each depth has its own bytes, whichever way one goes there.
TEST(EditProperty, HistoryGoesToAnyDepthAndBack) {
  EXPECT_TRUE(rc::check([] {
    History history(randomStart());
    std::vector<std::string> texts = {serialize(history.document())};
    std::vector<std::string> labels;
    const int numEdits = *rc::gen::inRange(0, 20);
    for (int i = 0; i < numEdits; ++i) {
      if (!history.apply(randomEditOrGroup(history.document()))) continue;
      texts.push_back(serialize(history.document()));
      labels.push_back(history.undoLabel());
    }
    const std::size_t saved = *rc::gen::inRange<std::size_t>(0, texts.size());
    history.goTo(saved);
    history.markSaved();
    const auto depths = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, texts.size()));
    for (const std::size_t depth : depths) {
      history.goTo(depth);
      RC_ASSERT(history.depth() == depth);
      RC_ASSERT(history.size() == labels.size());
      RC_ASSERT(serialize(history.document()) == texts[depth]);
      RC_ASSERT(history.isModified() == (depth != saved));
      RC_ASSERT(history.savedDepth() == saved);
      for (std::size_t i = 0; i < labels.size(); ++i) RC_ASSERT(history.label(i) == labels[i]);
    }
    history.goTo(labels.size());
    RC_ASSERT(serialize(history.document()) == texts.back());
  }));
}

// ---- Examples.

TEST(Edit, RefusalsGiveTheReasonAndASuggestion) {
  const PipelineDocument llama = example("llama_mlp");
  EXPECT_EQ(refusal(llama, AddOp{{.id = "norm", .operation = "GELU"}}),
            "The id norm is already used; norm2 is available.");
  EXPECT_EQ(refusal(llama, AddOp{{.id = "x", .operation = "GELU"}}), "The id x is already used; x2 is available.");
  EXPECT_EQ(refusal(llama, AddOp{{.id = "a.b", .operation = "GELU"}}),
            "The id \"a.b\" contains \".\"; expected an id without spaces and . / : @ \".");
  EXPECT_EQ(refusal(llama, AddOp{{.id = "", .operation = "GELU"}}), "An id must not be empty.");
  EXPECT_EQ(refusal(llama, RemoveOp{"nrm"}), "There is no op nrm; did you mean norm?");
  EXPECT_EQ(refusal(llama, RemoveOp{"norm"}), "norm is still connected. Remove its wires and outputs too.");
  EXPECT_EQ(refusal(llama, RemoveInput{"x"}), "Input x is still connected. Remove its wires too.");
  EXPECT_EQ(refusal(llama, RenameOp{"norm", "fc1"}), "The id fc1 is already used; fc3 is available.");
  EXPECT_EQ(refusal(llama, RemoveWire{{{"x", ""}, {"norm", "x"}}}), "There is no wire from x to norm.x.");
  EXPECT_EQ(refusal(llama, AddWire{{{"x", ""}, {"norm", "x"}}, 70}), "Position 70 is outside the list of 7.");
  EXPECT_EQ(refusal(llama, SetAttribute{"norm", "eps", std::nan("")}),
            "eps contains text that is not UTF-8 or a number that is not finite, which a pipeline file cannot store.");
}

TEST(Edit, AGroupIsAllOrNothing) {
  PipelineDocument document = example("llama_mlp");
  const PipelineDocument before = document;
  EXPECT_FALSE(applyEdit(document, EditGroup{"", {SetAttribute{"norm", "eps", 1.0}, RemoveOp{"absent"}}}));
  EXPECT_EQ(document, before);
}

TEST(Edit, RenamingAnOpTakesItsWiresOutputsAndPositionAlong) {
  PipelineDocument document = example("llama_mlp");
  std::string text = serialize(document);
  ASSERT_TRUE(applyEdit(document, RenameOp{"add", "sum"}));
  for (std::size_t at = 0; (at = text.find("\"add", at)) != std::string::npos;) text.replace(at, 4, "\"sum");
  EXPECT_EQ(serialize(document), text);
}

TEST(Edit, RenamingAnInputTakesItsWiresAlong) {
  PipelineDocument document = example("linear_bias");
  DocumentInput input = document.inputs().front();
  input.id = "data";
  ASSERT_TRUE(applyEdit(document, ReplaceInput{"x", input}));
  EXPECT_EQ(toString(document.wires().front().from), "data");
  EXPECT_EQ(document.positions().front().first, "data");
}

TEST(Edit, RemovingAnOpReconnectsItsNeighbours) {
  PipelineDocument document = example("llama_mlp");
  ASSERT_TRUE(applyEdit(document, removeOpWithWires(document, "norm", true)));
  EXPECT_FALSE(document.findOp("norm"));
  EXPECT_NE(std::ranges::find(document.wires(), Wire{{"save", "y"}, {"fc1", "x"}}), document.wires().end());
  EXPECT_EQ(document.wires().size(), 6U);
  ASSERT_TRUE(applyEdit(document, removeOpWithWires(document, "add", true)));
  EXPECT_EQ(toString(document.findOutput("y")->from), "fc2.y");
}

TEST(Edit, RemovingAnOpTakesItsWiresOutputsAndPositionAlong) {
  PipelineDocument document = example("llama_mlp");
  ASSERT_TRUE(applyEdit(document, removeOpWithWires(document, "add")));
  EXPECT_TRUE(document.outputs().empty());
  EXPECT_EQ(document.wires().size(), 5U);
  EXPECT_EQ(document.positions().size(), 6U);
}

TEST(Edit, GivingAnInputAProperIdCanBeUndone) {
  PipelineDocument document;
  ASSERT_TRUE(applyEdit(document, AddInput{{.id = "bad id"}, 0}));
  const PipelineDocument before = document;
  const Result<Edit> inverse = applyEdit(document, ReplaceInput{"bad id", {.id = "good"}});
  ASSERT_TRUE(inverse);
  ASSERT_TRUE(applyEdit(document, *inverse));
  EXPECT_EQ(document, before);
}

TEST(Edit, FreeIdsCountUp) {
  PipelineDocument document = example("llama_mlp");
  EXPECT_EQ(document.freeId("gelu"), "gelu");
  EXPECT_EQ(document.freeId("norm"), "norm2");
  EXPECT_EQ(document.freeId("fc1"), "fc3");
  EXPECT_EQ(document.freeId("x"), "x2");
}

TEST(Edit, TenThousandOpsArePastedInOneGroup) {
  EditGroup group{.label = "Paste", .edits = {}};
  for (int i = 0; i < 10000; ++i) group.edits.push_back(AddOp{{.id = "op" + std::to_string(i), .operation = "GELU"}});
  PipelineDocument document;
  const Result<Edit> inverse = applyEdit(document, group);
  ASSERT_TRUE(inverse);
  EXPECT_EQ(document.ops().size(), 10000U);
  ASSERT_TRUE(applyEdit(document, *inverse));
  EXPECT_EQ(document, PipelineDocument());
}

// ---- Connections.

std::string connection(const PipelineDocument& document, const char* from, const char* to) {
  return canConnect(document, {parseEndpoint(from), parseEndpoint(to)}).reason();
}

TEST(Connect, SaysWhyAWireIsIllegal) {
  const PipelineDocument llama = example("llama_mlp");
  EXPECT_EQ(connection(llama, "x", "norm.x"), "norm.x is already connected to save.y. Remove that wire first.");
  EXPECT_EQ(connection(llama, "x", "norm.z"), "norm (RMSNorm) has no input \"z\"; it has x.");
  EXPECT_EQ(connection(llama, "norm", "fc1.x"), "norm (RMSNorm) has no output without a name; it has y.");
  EXPECT_EQ(connection(llama, "norm.y", "norm.x"), "norm cannot consume its own output.");
  EXPECT_EQ(connection(llama, "x.y", "norm.x"), "Pipeline input x is a single tensor; it has no port y.");
  EXPECT_EQ(connection(llama, "nope.y", "norm.x"), "There is no op or pipeline input nope.");
  EXPECT_EQ(connection(llama, "norm.y", "y"), "y is not an op. A wire must end at an input of an op.");
  EXPECT_EQ(connection(llama, "norm.y", "nope.x"), "There is no op nope.");
}

TEST(Connect, NamesTheCycleItWouldClose) {
  PipelineDocument document = example("llama_mlp");
  ASSERT_TRUE(applyEdit(document, RemoveWire{{{"save", "y"}, {"norm", "x"}}}));
  EXPECT_EQ(connection(document, "act.y", "norm.x"), "This wire would close a cycle: norm -> fc1 -> act -> norm.");
}

TEST(Connect, LetsOneResultFeedSeveralInputs) {
  PipelineDocument document = example("llama_mlp");
  ASSERT_TRUE(applyEdit(document, AddOp{{.id = "gelu", .operation = "GELU"}}));
  EXPECT_EQ(connection(document, "norm.y", "gelu.x"), "");
  EXPECT_EQ(connection(document, "x", "gelu.x"), "");
}

// ---- History.

TEST(History, KnowsWhetherTheFileIsUpToDate) {
  History history(example("linear_bias"));
  EXPECT_FALSE(history.isModified());
  ASSERT_TRUE(history.apply(SetSymbol{"M", 1}));
  EXPECT_TRUE(history.isModified());
  history.markSaved();
  EXPECT_FALSE(history.isModified());
  history.undo();
  EXPECT_TRUE(history.isModified());
  history.redo();
  EXPECT_FALSE(history.isModified());
  history.undo();
  ASSERT_TRUE(history.apply(SetSymbol{"M", 2}));
  EXPECT_TRUE(history.isModified());
  history.undo();
  EXPECT_TRUE(history.isModified());
}

TEST(History, MergesADragIntoOneEntry) {
  History history(example("linear_bias"));
  const std::string before = serialize(history.document());
  for (int x = 0; x < 100; ++x) ASSERT_TRUE(history.apply(MoveNode{"fc", Position{x, 5}}, "drag"));
  history.undo();
  EXPECT_FALSE(history.canUndo());
  EXPECT_EQ(serialize(history.document()), before);
  history.redo();
  EXPECT_EQ(history.document().positions()[1].second, (Position{99, 5}));
}

TEST(History, DoesNotMergeAcrossASave) {
  History history(example("linear_bias"));
  ASSERT_TRUE(history.apply(SetSymbol{"M", 1}, "type"));
  history.markSaved();
  ASSERT_TRUE(history.apply(SetSymbol{"M", 12}, "type"));
  EXPECT_TRUE(history.isModified());
  history.undo();
  EXPECT_EQ(history.document().symbols()["M"], Json(1));
}

TEST(History, NamesTheUndoneEdit) {
  History history(example("linear_bias"));
  EXPECT_EQ(history.undoLabel(), "");
  ASSERT_TRUE(history.apply(SetAttribute{"fc", "bias", false}));
  EXPECT_EQ(history.undoLabel(), "Set fc.bias");
  history.undo();
  EXPECT_EQ(history.redoLabel(), "Set fc.bias");
}

TEST(History, AnEditAfterUndoReplacesTheUndoneEdits) {
  History history(example("linear_bias"));
  for (const int value : {1, 2, 3}) ASSERT_TRUE(history.apply(SetSymbol{"M", value}));
  history.markSaved();
  history.goTo(1);
  EXPECT_EQ(history.size(), 3U);
  EXPECT_EQ(history.savedDepth(), 3U);
  ASSERT_TRUE(history.apply(SetAttribute{"fc", "bias", false}));
  EXPECT_EQ(history.size(), 2U);
  EXPECT_EQ(history.label(0), "Set symbol M");
  EXPECT_EQ(history.label(1), "Set fc.bias");
  EXPECT_EQ(history.savedDepth(), std::nullopt);
}

TEST(History, ARefusedEditLeavesNoEntry) {
  History history(example("linear_bias"));
  EXPECT_FALSE(history.apply(RemoveOp{"absent"}));
  EXPECT_FALSE(history.canUndo());
}

}  // namespace
}  // namespace fuseline::testing
