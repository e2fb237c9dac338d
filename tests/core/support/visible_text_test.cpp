// Replacement of control characters in a text.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/visible_text.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(VisibleText, HasNoControlCharacters) {
  EXPECT_EQ(visibleText("f\x1b[2J32\n::error::\x7f"), "f\\u001b[2J32\\u000a::error::\\u007f");
  EXPECT_EQ(visibleText("\xC2\x9B"
                        "31m"),
            "\\u009b31m")
      << "CSI as one character";
}

TEST(VisibleText, KeepsTheOrderOfWriting) {
  EXPECT_EQ(visibleText("a\xE2\x80\xAEz\xE2\x81\xA6.\xE2\x80\xA8\xD8\x9C"), "a\\u202ez\\u2066.\\u2028\\u061c");
}

TEST(VisibleText, LeavesEverythingElse) {
  EXPECT_EQ(visibleText("\xE2\x80\xA6 \xE2\x86\x92 \xF0\x9F\x98\x80 \xE2\x80"),
            "\xE2\x80\xA6 \xE2\x86\x92 \xF0\x9F\x98\x80 \xE2\x80");
  EXPECT_EQ(visibleText("gr\xC3\xB6\xC3\x9F"
                        "e \xC2\xB5s"),
            "gr\xC3\xB6\xC3\x9F"
            "e \xC2\xB5s");
  EXPECT_EQ(visibleText("\xC2"), "\xC2");
}

}  // namespace
}  // namespace fuseline
