// Fields are read correctly by readers of RFC 4180.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/csv.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(Csv, QuotesWhatWouldBeTakenForSomethingElse) {
  EXPECT_EQ(csvLine({"", "plain", "a, b", "5\" disk", "two\nlines", ""}),
            ",plain,\"a, b\",\"5\"\" disk\",\"two\nlines\",\r\n");
}

TEST(Csv, HoldsNoFormula) {
  EXPECT_EQ(csvField("=HYPERLINK(1)"), "'=HYPERLINK(1)");
  EXPECT_EQ(csvField("@SUM(1,2)"), "\"'@SUM(1,2)\"");
  EXPECT_EQ(csvField("-cmd"), "'-cmd");
  for (const char* number : {"-1.5", "+2", "-3e-4", "-inf"}) EXPECT_EQ(csvField(number), number);
  EXPECT_EQ(csvField("a\x1b[2J\tb\rc"), "a\\u001b[2J\\u0009b\\u000dc");
}

}  // namespace
}  // namespace fuseline
