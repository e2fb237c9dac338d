// Text of diagnostics that quote a file.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/diagnostic.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

// A runner of GitHub would take the second line for a command.
TEST(Diagnostic, ItsTextIsOneLineWithoutControlCharacters) {
  const Diagnostic diagnostic{.code = "unknown-op",
                              .pointer = "/symbols/S\n::error::",
                              .message = "No op is named \"\x1b[2J\n::error file=x::\"."};
  EXPECT_EQ(toString(diagnostic, "a.fuseline"),
            "a.fuseline: error: No op is named \"\\u001b[2J\\u000a::error file=x::\". [unknown-op at "
            "/symbols/S\\u000a::error::]");
}

}  // namespace
}  // namespace fuseline
