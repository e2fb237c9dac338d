// The words of edits and diagnostics.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/diagnostic.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

TEST(Endpoint, IsAnOpAndAPortOrAnInput) {
  EXPECT_EQ(parseEndpoint("norm.y"), (Endpoint{"norm", "y"}));
  EXPECT_EQ(parseEndpoint("x"), (Endpoint{"x", ""}));
}

TEST(Endpoint, IsWrittenBackAsItWasRead) {
  EXPECT_TRUE(rc::check([](const std::string& text) { RC_ASSERT(toString(parseEndpoint(text)) == text); }));
  for (const char* text : {"", ".", "a.", ".b", "a.b.c", "a..b"}) EXPECT_EQ(toString(parseEndpoint(text)), text);
}

TEST(Describe, SaysWhatTheUndoMenuShows) {
  EXPECT_EQ(describe(AddOp{{.id = "norm", .operation = "RMSNorm"}}), "Add RMSNorm");
  EXPECT_EQ(describe(RemoveOp{"norm"}), "Remove norm");
  EXPECT_EQ(describe(RenameOp{"a", "b"}), "Rename a to b");
  EXPECT_EQ(describe(SetAttribute{"fc1", "bias", true}), "Set fc1.bias");
  EXPECT_EQ(describe(SetAttribute{"fc1", "bias", nullptr}), "Reset fc1.bias");
  EXPECT_EQ(describe(AddWire{{{"x", ""}, {"fc1", "x"}}}), "Connect x to fc1.x");
  EXPECT_EQ(describe(RemoveWire{{{"x", ""}, {"fc1", "x"}}}), "Disconnect x from fc1.x");
  EXPECT_EQ(describe(MoveNode{"fc1", Position{1, 2}}), "Move fc1");
  EXPECT_EQ(describe(SetSymbol{"H", 8}), "Set symbol H");
  EXPECT_EQ(describe(AddBlock{"Layer", {}}), "Add block Layer");
  EXPECT_EQ(describe(EditInBlock{"Layer", {SetAttribute{"fc1", "bias", true}}}), "Set fc1.bias in block Layer");
  EXPECT_EQ(describe(EditGroup{"Paste", {RemoveOp{"a"}}}), "Paste");
  EXPECT_EQ(describe(EditGroup{"", {RemoveOp{"a"}}}), "Remove a");
}

TEST(Diagnostic, PrintsPlaceSentenceCodeAndPointer) {
  Diagnostic diagnostic{.code = "unknown-op", .pointer = "/pipeline/ops/1/op", .message = "No such op."};
  EXPECT_EQ(toString(diagnostic, "a.fuseline"), "a.fuseline: error: No such op. [unknown-op at /pipeline/ops/1/op]");
  diagnostic.line = 12;
  diagnostic.column = 7;
  diagnostic.severity = Severity::Warning;
  diagnostic.pointer = "";
  EXPECT_EQ(toString(diagnostic, "a.fuseline"), "a.fuseline:12:7: warning: No such op. [unknown-op]");
}

TEST(Diagnostic, OnlyErrorsAreErrors) {
  EXPECT_FALSE(hasErrors({}));
  EXPECT_FALSE(hasErrors({{.severity = Severity::Warning}, {.severity = Severity::Note}}));
  EXPECT_TRUE(hasErrors({{.severity = Severity::Warning}, {.severity = Severity::Error}}));
}

}  // namespace
}  // namespace fuseline
