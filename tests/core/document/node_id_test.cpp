// Ids: which ones are accepted.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/node_id.h"

#include <string>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(NodeIds, AreLettersDigitsUnderscoresAndHyphens) {
  for (const char* id : {"fc1", "a-b", "_", "7", "größe", "\u5C64"}) EXPECT_TRUE(checkId(id)) << id;
  EXPECT_EQ(checkId("f|c").reason(), "The id \"f|c\" contains \"|\"; expected letters, digits, _ and -.");
  EXPECT_EQ(checkId("a b").reason(), "The id \"a b\" contains a space; expected letters, digits, _ and -.");
  EXPECT_FALSE(checkId(""));
}

/// Punctuation separates ids in lists, tables, settings and keys.
TEST(NodeIds, HaveNoPunctuation) {
  for (const char c : std::string("!\"#$%&'()*+,./:;<=>?@[\\]^`{|}~ \t\n")) {
    const std::string id = std::string("f") + c + "c";
    EXPECT_FALSE(checkId(id)) << id;
  }
}

}  // namespace
}  // namespace fuseline
