// Fields that readers of RFC 4180 take for what they are.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/csv.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(Csv, QuotesWhatWouldBeTakenForSomethingElse) {
  EXPECT_EQ(csvLine({"", "plain", "a, b", "5\" disk", "two\nlines", ""}),
            ",plain,\"a, b\",\"5\"\" disk\",\"two\nlines\",\r\n");
}

}  // namespace
}  // namespace fuseline
