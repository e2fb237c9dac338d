// Bytes as text.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/base64.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline::testing {
namespace {

// RFC 4648, section 10.
TEST(Base64, WritesTheVectorsOfTheStandard) {
  EXPECT_EQ(toBase64(""), "");
  EXPECT_EQ(toBase64("f"), "Zg==");
  EXPECT_EQ(toBase64("fo"), "Zm8=");
  EXPECT_EQ(toBase64("foo"), "Zm9v");
  EXPECT_EQ(toBase64("foobar"), "Zm9vYmFy");
}

TEST(Base64, ReadsWhatItWrites) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) { RC_ASSERT(fromBase64(toBase64(bytes)) == bytes); }));
}

TEST(Base64, RefusesOtherTexts) {
  for (const char* const text : {"Zg=", "Zg", "Z!==", "====", "Zg==Zg=="}) EXPECT_FALSE(fromBase64(text)) << text;
}

}  // namespace
}  // namespace fuseline::testing
