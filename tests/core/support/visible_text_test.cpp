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

TEST(VisibleText, LeavesEverythingElse) {
  EXPECT_EQ(visibleText("gr\xC3\xB6\xC3\x9F"
                        "e \xC2\xB5s"),
            "gr\xC3\xB6\xC3\x9F"
            "e \xC2\xB5s");
  EXPECT_EQ(visibleText("\xC2"), "\xC2");
}

}  // namespace
}  // namespace fuseline
