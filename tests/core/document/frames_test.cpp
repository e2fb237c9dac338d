// Frames and notes: their contents in a file, the contents that are kept, and they do not affect a pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "core/compare/document_difference.h"
#include "core/document/format_version.h"
#include "core/document/pipeline_hash.h"
#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/edit/history.h"
#include "tests/support/example_texts.h"
#include "tests/support/random_edits.h"

#include <fmt/format.h>

namespace fuseline::testing {
namespace {

DocumentFrame frameOf(const std::string& id, const std::string& title) {
  return {.id = id, .title = title, .area = FrameArea{-40, -72, 240, 160}};
}

PipelineDocument withFrame(PipelineDocument document, const DocumentFrame& frame) {
  EXPECT_TRUE(applyEdit(document, AddFrame{frame}));
  return document;
}

/// A file of this minor version with these frames in its view.
std::string fileOf(const std::string& frames, int minor = kFormatMinorOfFrames) {
  return fmt::format(R"({{
  "$schema": "fuseline-pipeline-1.json",
  "format": "fuseline-pipeline",
  "formatVersion": {{"major": 1, "minor": {}}},
  "pipeline": {{
    "inputs": [],
    "ops": [],
    "wires": [],
    "outputs": []
  }},
  "view": {{"frames": {}}}
}}
)",
                     minor, frames);
}

std::string onlyMessage(const std::string& text) {
  const LoadedDocument loaded = parseDocument(text);
  EXPECT_EQ(loaded.diagnostics.size(), 1U);
  if (loaded.diagnostics.empty()) return {};
  EXPECT_EQ(loaded.diagnostics.front().severity, Severity::Warning);
  return loaded.diagnostics.front().code + ": " + loaded.diagnostics.front().message;
}

TEST(FrameFile, IsReadAndWrittenByteForByte) {
  const std::string text =
      fileOf(R"([{"id": "f", "title": "F", "area": [-40, -8, 24, 16], "color": "blue", "locked": true, "z": 1}])");
  const LoadedDocument loaded = parseDocument(text);
  EXPECT_TRUE(loaded.diagnostics.empty());
  const DocumentFrame& frame = *loaded.document.findFrame("f");
  EXPECT_EQ(frame.title, "F");
  EXPECT_EQ(frame.area, (FrameArea{-40, -8, 24, 16}));
  EXPECT_EQ(frame.color, "blue");
  EXPECT_TRUE(frame.isLocked());
  EXPECT_FALSE(frame.isNote());
  EXPECT_EQ(serialize(loaded.document), text);
}

TEST(FrameFile, ANoteHasTextOfSeveralLines) {
  const std::string text = fileOf(R"([{"id": "note", "text": "Why:\n8 bits do.", "area": [0, 0, 100, 40]}])");
  const PipelineDocument document = parseDocument(text).document;
  EXPECT_EQ(document.findFrame("note")->text, "Why:\n8 bits do.");
  EXPECT_TRUE(document.findFrame("note")->isNote());
  EXPECT_EQ(serialize(document), text);
}

TEST(FrameFile, SaysAtLeastTheVersionOfFramesWhereItHasOne) {
  const PipelineDocument llama = example("llama_mlp");
  const std::string framed = serialize(withFrame(llama, frameOf("mlp", "MLP")));
  EXPECT_NE(framed.find(R"("minor": 3)"), std::string::npos);
  PipelineDocument inBlock = example("transformer_stack");
  ASSERT_FALSE(inBlock.blocks().empty());
  ASSERT_TRUE(applyEdit(inBlock, EditInBlock{inBlock.blocks().front().first, {AddFrame{frameOf("mlp", "MLP")}}}));
  EXPECT_NE(serialize(inBlock).find(R"("minor": 3)"), std::string::npos);
}

TEST(FrameFile, AnOlderOneWithoutFramesStaysAsItWas) {
  for (const char* name : {"llama_mlp", "transformer_stack"}) {
    const std::string text = readFile(examplesFolder() / (std::string(name) + ".fuseline"));
    EXPECT_EQ(serialize(parseDocument(text).document), text) << name;
  }
  const std::string older = fileOf("{}", 2);
  const std::string withoutFrames = older.substr(0, older.find(",\n  \"view\"")) + "\n}\n";
  EXPECT_EQ(serialize(parseDocument(withoutFrames).document), withoutFrames);
}

TEST(FrameFile, KeepsUnreadableFramesWithAWarning) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"([{"id": "a", "area": [0, 0, 0, 5]}])",
       "wrong-type: \"area\" is [...] (a list); expected four integers: x and y (magnitude at most 1000000000), "
       "width and height (1 to 1000000)."},
      {R"([{"id": "a", "area": [0, 0, 1000001, 5]}])",
       "wrong-type: \"area\" is [...] (a list); expected four integers: x and y (magnitude at most 1000000000), "
       "width and height (1 to 1000000)."},
      {R"([{"id": "a", "area": [2000000000, 0, 8, 8]}])",
       "wrong-type: \"area\" is [...] (a list); expected four integers: x and y (magnitude at most 1000000000), "
       "width and height (1 to 1000000)."},
      {R"([{"id": "a", "title": 5, "area": [0, 0, 8, 8]}])", "wrong-type: \"title\" is 5 (an integer); expected text."},
      {R"([{"id": "a", "area": [0, 0, 8, 8], "locked": "yes"}])",
       "wrong-type: \"locked\" is \"yes\" (text); expected true or false."},
      {R"([{"id": "a", "title": "A"}])", "missing-field: A frame has no \"area\"; it is kept, but not drawn."},
      {R"([{"title": "A", "area": [0, 0, 8, 8]}])", "missing-field: A frame has no \"id\"; it is kept, but not drawn."},
      {R"([{"id": "a", "area": [0, 0, 8, 8]}, {"id": "a", "area": [0, 0, 9, 9]}])",
       "duplicate-id: Two frames have the id a; this one is not drawn."},
      {R"([7])", "wrong-type: Expected a frame (an object), found 7."},
      {R"("none")", "wrong-type: \"frames\" is \"none\" (text); expected a list."}};
  for (const auto& [frames, message] : cases) {
    EXPECT_EQ(onlyMessage(fileOf(frames)), message);
    EXPECT_EQ(serialize(parseDocument(fileOf(frames)).document), fileOf(frames));
  }
}

TEST(Frame, MeansNothingToThePipeline) {
  const PipelineDocument llama = example("llama_mlp");
  const PipelineDocument framed = withFrame(llama, frameOf("norm", "The id of an op"));
  EXPECT_TRUE(meansTheSame(llama, framed));
  EXPECT_TRUE(documentDifference(llama, framed).empty());
  const auto hashOf = [](const PipelineDocument& document) {
    return hashWithoutView(Json::parse(serialize(document)));
  };
  EXPECT_EQ(hashOf(llama), hashOf(framed));
  PipelineDocument inBlock = example("transformer_stack");
  const PipelineDocument stack = inBlock;
  ASSERT_TRUE(applyEdit(inBlock, EditInBlock{inBlock.blocks().front().first, {AddFrame{frameOf("mlp", "MLP")}}}));
  EXPECT_TRUE(meansTheSame(stack, inBlock));
  EXPECT_EQ(hashOf(inBlock), hashOf(stack));
  ASSERT_TRUE(applyEdit(inBlock, EditInBlock{inBlock.blocks().front().first, {MoveNode{"norm", Position{8, 8}}}}));
  EXPECT_EQ(hashOf(inBlock), hashOf(stack));
}

/// A file may say a newer version than it needs: one that had a block once.
TEST(PipelineHash, IsThatOfTheVersionThatIsNeeded) {
  const Json pipeline = Json::parse(serialize(example("llama_mlp")));
  for (const int minor : {1, 2, 3}) {
    Json newer = pipeline;
    newer["formatVersion"]["minor"] = minor;
    EXPECT_EQ(hashWithoutView(newer), hashWithoutView(pipeline)) << minor;
  }
  Json unknown = pipeline;
  unknown["formatVersion"]["minor"] = 99;
  EXPECT_NE(hashWithoutView(unknown), hashWithoutView(pipeline));
}

TEST(Frame, IsAChangeOfTheViewWhereThatIsAskedFor) {
  const PipelineDocument llama = example("llama_mlp");
  const PipelineDocument framed = withFrame(llama, frameOf("mlp", "MLP"));
  const auto changes = documentDifference(llama, framed, {.withView = true});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(placeOf(changes.front()), "place of frame mlp");
  EXPECT_EQ(changes.front().kind, DocumentChange::Kind::Added);
}

TEST(Frame, WithoutAnIdOfItsOwnIsStillAChangeOfTheView) {
  for (const char* ids : {R"("id": "a")", R"("z": 1)"}) {
    const auto documentWith = [&](int width) {
      return parseDocument(fileOf(fmt::format("[{{{0}, \"area\": [0, 0, {1}, 8]}}, {{{0}, \"area\": [0, 0, 9, 9]}}]",
                                              ids, width)))
          .document;
    };
    EXPECT_TRUE(documentDifference(documentWith(8), documentWith(8), {.withView = true}).empty());
    EXPECT_EQ(documentDifference(documentWith(8), documentWith(16), {.withView = true}).size(), 1U);
  }
}

TEST(FrameEdit, RefusesWithASentence) {
  PipelineDocument document = withFrame(PipelineDocument(), frameOf("mlp", "MLP"));
  const auto refusal = [&](const Edit& edit) {
    const Result<Edit> result = applyEdit(document, edit);
    return result ? "accepted" : result.error().message;
  };
  EXPECT_EQ(refusal(AddFrame{frameOf("mlp", "")}), "A frame named mlp already exists.");
  EXPECT_EQ(refusal(AddFrame{frameOf("", "")}), "The id of a frame must not be empty.");
  EXPECT_EQ(refusal(RemoveFrame{"mpl"}), "There is no frame mpl; did you mean mlp?");
  EXPECT_EQ(refusal(ReplaceFrame{frameOf("x", "")}), "There is no frame x.");
  DocumentFrame flat = frameOf("mlp", "");
  flat.area->height = 0;
  EXPECT_EQ(refusal(ReplaceFrame{flat}),
            "The frame mlp cannot be stored: its sides must be from 1 to 1000000, its corner within 1000000000, and "
            "its text UTF-8.");
}

TEST(FrameEdit, AMergedDragIsUndoneAtOnce) {
  History history(withFrame(PipelineDocument(), frameOf("mlp", "MLP")));
  const std::string before = serialize(history.document());
  for (int x = 0; x < 10; ++x) {
    DocumentFrame moved = frameOf("mlp", "MLP");
    moved.area->x = x;
    ASSERT_TRUE(history.apply(ReplaceFrame{moved}, "drag"));
  }
  history.undo();
  EXPECT_FALSE(history.canUndo());
  EXPECT_EQ(serialize(history.document()), before);
}

TEST(FrameEdit, AFrameAroundTheOpsOfANewBlockGoesInsideAndComesOutAgain) {
  PipelineDocument document = example("llama_mlp");
  DocumentFrame around = frameOf("mlp", "MLP");
  around.area = FrameArea{620, 48, 680, 168};  // fc1, act and fc2
  ASSERT_TRUE(applyEdit(document, AddFrame{around}));
  const PipelineDocument before = document;
  const std::vector<std::string> ids = {"fc1", "act", "fc2"};
  const Result<NewBlock> made = makeBlock(document, ids, "Mlp");
  ASSERT_TRUE(made);
  const Result<Edit> inverse = applyEdit(document, made->edit);
  ASSERT_TRUE(inverse);
  EXPECT_TRUE(document.frames().empty());
  ASSERT_EQ(document.findBlock("Mlp")->frames.size(), 1U);
  EXPECT_EQ(document.findBlock("Mlp")->frames.front().area, (FrameArea{-40, -72, 680, 168}));
  EXPECT_NE(serialize(document).find(R"("minor": 3)"), std::string::npos);

  PipelineDocument expanded = document;
  ASSERT_TRUE(applyEdit(expanded, expandBlock(expanded, made->instance)->edit));
  EXPECT_EQ(expanded.frames(), before.frames());
  ASSERT_TRUE(applyEdit(document, *inverse));
  EXPECT_EQ(serialize(document), serialize(before));
}

TEST(FrameEdit, ABlockLeavesFramesAloneThatAreAroundOtherOpsToo) {
  PipelineDocument document = withFrame(example("llama_mlp"), frameOf("mlp", "MLP"));
  const std::vector<DocumentFrame> frames = document.frames();
  const std::vector<std::string> ids = {"fc1", "act", "fc2"};
  const Result<NewBlock> made = makeBlock(document, ids, "Mlp");
  ASSERT_TRUE(made);
  ASSERT_TRUE(applyEdit(document, made->edit));
  EXPECT_EQ(document.frames(), frames);
  const Result<ExpandedBlock> expanded = expandBlock(document, made->instance);
  ASSERT_TRUE(expanded);
  ASSERT_TRUE(applyEdit(document, expanded->edit));
  EXPECT_EQ(document.frames(), frames);
}

TEST(FrameId, CountsUpAmongFramesAlone) {
  const PipelineDocument document = withFrame(example("llama_mlp"), frameOf("frame", ""));
  EXPECT_EQ(document.freeFrameId("frame"), "frame2");
  EXPECT_EQ(document.freeFrameId("norm"), "norm");
  EXPECT_EQ(document.freeId("frame"), "frame");
}

}  // namespace
}  // namespace fuseline::testing
