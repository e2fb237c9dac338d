// Reroute points follow their wire through edits, and mean nothing to the pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/reroutes.h"

#include "core/edit/fragments.h"
#include "tests/core/edit/edit_scene.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

Link linkTo(const PipelineDocument& document, const Endpoint& to) { return *linkInto(document, to); }

/// "x,y" of each point, in order.
std::string pointsOf(const PipelineDocument& document, const Endpoint& to) {
  std::string text;
  auto reroutes = reroutesOf(document.pipeline());
  for (const Reroute& point : reroutes[rerouteKey(linkTo(document, to))])
    text += std::to_string(point.position.x) + "," + std::to_string(point.position.y) + " ";
  return text;
}

struct Rerouted : EditScene {
  Rerouted() {
    add({8, 80}, 0);
    add({24, 80}, 1);
    add({16, 80}, 1);  // between the two
  }
  void add(Position position, std::size_t before) {
    EXPECT_TRUE(appliesAndUndoes(history,
                                 addReroute(document().pipeline(), linkTo(document(), {"fc", "x"}), position, before)));
  }
};

TEST(Reroutes, StandInTheFileInTheOrderOfTheWire) {
  Rerouted s;
  EXPECT_EQ(pointsOf(s.document(), {"fc", "x"}), "8,80 16,80 24,80 ");
  const LoadedDocument read = parseDocument(serialize(s.document()));
  EXPECT_TRUE(read.diagnostics.empty());
  EXPECT_EQ(pointsOf(read.document, {"fc", "x"}), "8,80 16,80 24,80 ");
  EXPECT_TRUE(meansTheSame(s.document(), EditScene().document()));
}

TEST(Reroutes, FollowTheNamesOfTheirOps) {
  Rerouted s;
  ASSERT_TRUE(appliesAndUndoes(s.history, RenameOp{"fc", "dense"}));
  ASSERT_TRUE(appliesAndUndoes(s.history, RenameOp{"norm", "n"}));
  EXPECT_EQ(pointsOf(s.document(), {"dense", "x"}), "8,80 16,80 24,80 ");
}

TEST(Reroutes, GoWithTheirWire) {
  Rerouted s;
  ASSERT_TRUE(appliesAndUndoes(s.history, unlinkEdit(s.document(), linkTo(s.document(), {"fc", "x"}))));
  EXPECT_TRUE(reroutesOf(s.document().pipeline()).empty());
  s.history.undo();
  ASSERT_TRUE(appliesAndUndoes(s.history, linkEdit(s.document(), {"x", {}}, {"fc", "x"})));
  EXPECT_TRUE(reroutesOf(s.document().pipeline()).empty());
}

TEST(Reroutes, ArePastedWithTheirWire) {
  Rerouted s;
  const auto pasted = pasteFragment(s.document(), copyFragment(s.document(), {"norm", "fc"}), {100, 0});
  ASSERT_TRUE(pasted);
  ASSERT_TRUE(appliesAndUndoes(s.history, pasted->edit));
  EXPECT_EQ(pointsOf(s.document(), {"fc2", "x"}), "108,80 116,80 124,80 ");
  EXPECT_EQ(pointsOf(s.document(), {"fc", "x"}), "8,80 16,80 24,80 ");
}

}  // namespace
}  // namespace fuseline::testing
