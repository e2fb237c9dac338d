// Copying and pasting pieces of pipelines.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/fragments.h"

#include "core/edit/block_edits.h"
#include "core/edit/copy_place.h"
#include "core/edit/view_grid.h"
#include "tests/core/edit/edit_scene.h"
#include "tests/core/edit/has_link.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

TEST(Fragments, PastesWithFreshIdsAndInnerWires) {
  EditScene s;
  const std::string text = copyFragment(s.document(), {"norm", "fc"});
  const auto pasted = pasteFragment(s.document(), text, {10, 10});
  ASSERT_TRUE(pasted);
  ASSERT_TRUE(appliesAndUndoes(s.history, pasted->edit));
  EXPECT_EQ(pasted->ids.size(), 2U);
  ASSERT_TRUE(hasLink(s.document(), "norm2.y", "fc2.x"));
  ASSERT_TRUE(s.document().findOp("fc2")->attributes == s.document().findOp("fc")->attributes);
}

TEST(Fragments, KeepsIncomingWiresOnRequest) {
  EditScene s;
  const std::string text = copyFragment(s.document(), {"fc", "act"});
  const auto plain = pasteFragment(s.document(), text, {});
  const auto wired = pasteFragment(s.document(), text, {}, IncomingWires::Kept);
  ASSERT_TRUE(plain && wired);
  ASSERT_TRUE(appliesAndUndoes(s.history, plain->edit));
  EXPECT_FALSE(linkInto(s.document(), {"fc2", "x"}));
  s.history.undo();
  ASSERT_TRUE(appliesAndUndoes(s.history, wired->edit));
  EXPECT_TRUE(hasLink(s.document(), "norm.y", "fc2.x"));
  EXPECT_TRUE(hasLink(s.document(), "fc2.y", "act2.x"));
  EXPECT_TRUE(hasLink(s.document(), "norm.y", "fc.x")) << "the original keeps its own";
}

TEST(Fragments, CopiesStandBelowOriginalsAndBelowEachOther) {
  EditScene s;
  ASSERT_TRUE(s.history.apply(MoveNode{"norm", Position{0, 0}}));
  ASSERT_TRUE(s.history.apply(MoveNode{"fc", Position{200, 0}}));
  const std::string text = copyFragment(s.document(), {"norm", "fc"});
  for (int copy = 1; copy <= 2; ++copy) {
    const auto pasted = pasteFragment(s.document(), text, offsetOfCopy(s.document(), text));
    ASSERT_TRUE(pasted);
    ASSERT_TRUE(appliesAndUndoes(s.history, pasted->edit));
    for (const std::string& id : pasted->ids)
      EXPECT_EQ(positionOf(s.document().pipeline(), id)->y, copy * kRowPitchPx) << id;
  }
}

TEST(Fragments, LeavesOutIncomingWiresOfOtherPipelines) {
  EditScene s;
  std::string text = copyFragment(s.document(), {"fc"});
  text.replace(text.find("norm.y"), 6, "nowhere.y");
  const auto pasted = pasteFragment(s.document(), text, {}, IncomingWires::Kept);
  ASSERT_TRUE(pasted);
  ASSERT_TRUE(appliesAndUndoes(s.history, pasted->edit));
  EXPECT_FALSE(linkInto(s.document(), {"fc2", "x"}));
}

TEST(Fragments, PastesInstancesWithTheirBlocks) {
  EditScene s;
  ASSERT_TRUE(s.history.apply(makeBlock(s.document(), std::vector<std::string>{"fc", "act"}, "Mlp")->edit));
  const std::string text = copyFragment(s.document(), {"mlp"});
  EditScene other;
  const auto pasted = pasteFragment(other.document(), text, {});
  ASSERT_TRUE(pasted);
  ASSERT_TRUE(appliesAndUndoes(other.history, pasted->edit));
  ASSERT_TRUE(*other.document().findBlock("Mlp") == *s.document().findBlock("Mlp"));
  ASSERT_TRUE(other.document().findOp("mlp"));
  const auto again = pasteFragment(other.document(), text, {});
  ASSERT_TRUE(appliesAndUndoes(other.history, again->edit));
  EXPECT_EQ(other.document().blocks().size(), std::size_t{1});
}

TEST(Fragments, AnotherBlockOfTheSameNameComesUnderAFreeOne) {
  EditScene s;
  ASSERT_TRUE(s.history.apply(makeBlock(s.document(), std::vector<std::string>{"act"}, "Inner")->edit));
  ASSERT_TRUE(s.history.apply(makeBlock(s.document(), std::vector<std::string>{"fc", "inner"}, "Mlp")->edit));
  const std::string text = copyFragment(s.document(), {"mlp"});
  EditScene other;
  ASSERT_TRUE(other.history.apply(makeBlock(other.document(), std::vector<std::string>{"norm"}, "Inner")->edit));
  const auto pasted = pasteFragment(other.document(), text, {});
  ASSERT_TRUE(appliesAndUndoes(other.history, pasted->edit));
  ASSERT_TRUE(*other.document().findBlock("Inner2") == *s.document().findBlock("Inner"));
  const DocumentBlock& mlp = *other.document().findBlock("Mlp");
  ASSERT_TRUE(std::ranges::any_of(mlp.ops, [](const DocumentOp& op) { return op.operation == "block:Inner2"; }));
  EXPECT_EQ(other.document().findOp("mlp")->operation, std::string("block:Mlp"));
  // A block that contains a renamed block is a different block itself.
  const auto again = pasteFragment(other.document(), text, {});
  ASSERT_TRUE(appliesAndUndoes(other.history, again->edit));
  EXPECT_EQ(other.document().findOp("mlp2")->operation, std::string("block:Mlp2"));
}

TEST(Fragments, RefusesToPasteForeignText) {
  EditScene s;
  const auto pasted = pasteFragment(s.document(), "hello", {});
  ASSERT_FALSE(pasted);
}

TEST(Fragments, PastesAWholePipeline) {
  History empty{PipelineDocument()};
  const auto pasted = pasteFragment(empty.document(), smallPipeline(), {});
  ASSERT_TRUE(pasted);
  ASSERT_TRUE(appliesAndUndoes(empty, pasted->edit));
  EXPECT_EQ(serialize(empty.document()), serialize(parseDocument(smallPipeline()).document));
}

TEST(Fragments, PastesAWholePipelineNextToAnother) {
  EditScene s;
  ASSERT_TRUE(s.history.apply(MoveNode{.id = "norm", .position = Position{0, 500}}));
  ASSERT_TRUE(s.history.apply(SetSymbol{.name = "H", .value = 64}));
  std::string text = smallPipeline();
  text.insert(1, R"("view": {"positions": {"norm": [0, 80]}}, "recipe": {"name": "DelayedScaling"}, )");
  const auto pasted = pasteFragment(s.document(), text, {});
  ASSERT_TRUE(pasted);
  ASSERT_TRUE(appliesAndUndoes(s.history, pasted->edit));
  ASSERT_TRUE(hasLink(s.document(), "x2", "norm2.x"));
  ASSERT_TRUE(hasLink(s.document(), "act2.y", "y2"));
  ASSERT_TRUE(s.document().symbols()["H"] == Json(64));  // existing symbols are not changed
  ASSERT_TRUE(s.document().recipe().is_null());
  for (const auto& [id, position] : s.document().positions()) ASSERT_TRUE(id != "norm2" || position.y > 500);
}

TEST(Fragments, FragmentsBringTheirSymbols) {
  EditScene s;
  const std::string text = copyFragment(s.document(), {"fc"});
  History other{PipelineDocument()};
  ASSERT_TRUE(other.apply(pasteFragment(other.document(), text, {})->edit));
  ASSERT_TRUE(other.document().symbols() == Json({{"H", 32}}));  // M is not named in it
}

}  // namespace
}  // namespace fuseline::testing
