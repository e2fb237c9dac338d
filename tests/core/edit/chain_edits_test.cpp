// Chains of ops that are put into a wire.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/chain_edits.h"

#include "tests/core/edit/edit_scene.h"
#include "tests/core/edit/has_link.h"

#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

TEST(ChainEdits, PutsAChainIntoAWireAndMakesRoom) {
  EditSceneWithChain s;
  const Places places = {{"id", {0, 400}}, {"silu", {kNodePitchPx, 408}}};
  const Link wire = *linkInto(s.document(), {"fc", "x"});
  const Result<Edit> edit = spliceChain(s.document(), {"id", "silu"}, wire, places, Room::IsMade);
  ASSERT_TRUE(edit) << edit.error().message;
  ASSERT_TRUE(appliesAndUndoes(s.history, *edit));
  ASSERT_TRUE(hasLink(s.document(), "norm.y", "id.x") && hasLink(s.document(), "silu.y", "fc.x"));
  ASSERT_FALSE(hasLink(s.document(), "norm.y", "fc.x"));
  ASSERT_TRUE(s.at("norm") == (Position{kNodePitchPx, 0}));
  ASSERT_TRUE(s.at("id") == (Position{2 * kNodePitchPx, 0}));
  ASSERT_TRUE(s.at("silu") == (Position{3 * kNodePitchPx, 8}));
  ASSERT_TRUE(s.at("fc") == (Position{4 * kNodePitchPx, 0}));
  ASSERT_TRUE(s.at("y") == (Position{6 * kNodePitchPx, 0}));
}

TEST(ChainEdits, RefusesOpsThatFormNoChain) {
  EditSceneWithChain s;
  ASSERT_TRUE(s.history.apply(AddOp{.op = {.id = "loose", .operation = "SiLU"}}));
  const std::vector<std::pair<std::set<std::string>, std::string>> cases = {
      {{"id", "loose"}, "id.x, loose.x"}, {{"norm"}, "one unconnected input"}, {{"x"}, "x cannot be inserted"}};
  for (const auto& [chosen, reason] : cases) {
    const Result<ChainEnds> ends = chainEnds(s.document(), chosen);
    ASSERT_FALSE(ends);
    EXPECT_NE(ends.error().message.find(reason), std::string::npos) << ends.error().message;
  }
}

TEST(ChainEdits, PastesAChainIntoAWire) {
  EditSceneWithChain s;
  const std::string text = copyFragment(s.document(), {"id", "silu"});
  const auto pasted = pasteIntoWire(s.document(), text, *linkInto(s.document(), {"act", "x"}));
  ASSERT_TRUE(pasted) << pasted.error().message;
  ASSERT_TRUE(appliesAndUndoes(s.history, pasted->edit));
  EXPECT_EQ(pasted->ids, (std::set<std::string>{"id2", "silu2"}));
  ASSERT_TRUE(hasLink(s.document(), "fc.y", "id2.x") && hasLink(s.document(), "silu2.y", "act.x"));
  ASSERT_TRUE(s.at("id2") == (Position{3 * kNodePitchPx, 0}));
  ASSERT_TRUE(s.at("act") == (Position{5 * kNodePitchPx, 0}));
}

/// RMSNorm over 32 columns does not read the 64 that fc makes.
TEST(ChainEdits, DoesNotPasteAMismatchIntoAWire) {
  EditSceneWithChain s;
  const std::string text = copyFragment(s.document(), {"norm"});
  ASSERT_TRUE(pasteIntoWire(s.document(), text, *linkInto(s.document(), {"norm", "x"})));
  const auto pasted = pasteIntoWire(s.document(), text, *linkInto(s.document(), {"act", "x"}));
  ASSERT_FALSE(pasted);
  EXPECT_NE(pasted.error().message.find("64"), std::string::npos) << pasted.error().message;
}

}  // namespace
}  // namespace fuseline::testing
