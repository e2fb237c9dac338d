// Attributes that follow from a new wire, and repairs that are applied together.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/filling.h"

#include "core/edit/fix_all.h"
#include "tests/core/edit/edit_scene.h"
#include "tests/core/edit/has_link.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

/// x [16, 32] and, not connected to it, fc1 (Linear) -> fc2 (Linear) -> y, both without sizes.
std::string unsizedChain(const std::string& sizes = "") {
  return smallDocument(R"("inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}],
    "ops": [{"id": "fc1", "op": "Linear", "attributes": {)" +
                       sizes + R"(}}, {"id": "fc2", "op": "Linear", "attributes": {}}],
    "wires": [["fc1.y", "fc2.x"]], "outputs": [{"id": "y", "from": "fc2.y"}])");
}

TEST(Filling, AWireFillsTheOpAndThoseDownstream) {
  History history{parseDocument(unsizedChain()).document};
  ASSERT_TRUE(appliesAndUndoes(history, connectEdit(history.document(), {"x", ""}, {"fc1", "x"})));
  for (const char* op : {"fc1", "fc2"}) {
    EXPECT_EQ(history.document().findOp(op)->attributes.at("in_features"), "H") << op;
    EXPECT_EQ(history.document().findOp(op)->attributes.at("out_features"), "H") << op;
  }
  EXPECT_FALSE(hasErrors(lower(history.document()).diagnostics));
}

TEST(Filling, WrittenSizesStay) {
  History history{parseDocument(unsizedChain("\"out_features\": 48")).document};
  ASSERT_TRUE(history.apply(connectEdit(history.document(), {"x", ""}, {"fc1", "x"})));
  EXPECT_EQ(history.document().findOp("fc1")->attributes.at("out_features"), 48);
  EXPECT_EQ(history.document().findOp("fc2")->attributes.at("in_features"), 48);
}

TEST(Filling, NothingFollowsFromAnUnknownTensor) {
  EditScene scene;
  ASSERT_TRUE(scene.history.apply(AddOp{{.id = "a", .operation = "Linear"}}));
  ASSERT_TRUE(scene.history.apply(AddOp{{.id = "b", .operation = "Linear"}}));
  ASSERT_TRUE(scene.history.apply(connectEdit(scene.document(), {"a", "y"}, {"b", "x"})));
  EXPECT_TRUE(hasLink(scene.document(), "a.y", "b.x"));
  EXPECT_TRUE(scene.document().findOp("b")->attributes.empty());
}

TEST(FixAll, OffersAndAppliesEachMissingSize) {
  History history{parseDocument(unsizedChain()).document};
  ASSERT_TRUE(history.apply(linkEdit(history.document(), {"x", ""}, {"fc1", "x"})));
  const std::vector<Diagnostic> problems = lower(history.document()).diagnostics;
  EXPECT_EQ(numOnlyRepairs(problems), 2U);  // in_features and out_features of fc1; fc2 has no known input yet
  const auto numErrors = std::ranges::count(problems, Severity::Error, &Diagnostic::severity);
  EXPECT_EQ(numErrorsFixed(history.document(), problems), static_cast<std::size_t>(numErrors));
  ASSERT_TRUE(appliesAndUndoes(history, fixAll(history.document(), problems)));
  EXPECT_FALSE(hasErrors(lower(history.document()).diagnostics));
  EXPECT_EQ(history.document().findOp("fc2")->attributes.at("in_features"), 32);
}

}  // namespace
}  // namespace fuseline::testing
