// UTF-8 by RFC 3629: its own examples, and what it forbids.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

// Source: RFC 3629, 7.
TEST(Utf8, ReadsTheExamplesOfItsStandard) {
  std::u32string codes;
  for (std::string_view text = "A\xE2\x89\xA2\xCE\x91.\xEF\xBB\xBF\xF0\xA3\x8E\xB4"; !text.empty();) {
    const auto character = firstCharacter(text);
    ASSERT_TRUE(character);
    codes += character->code;
    text.remove_prefix(character->bytes.size());
  }
  EXPECT_EQ(codes, (std::u32string{0x41, 0x2262, 0x391, 0x2E, 0xFEFF, 0x233B4}));
}

// Source: RFC 3629, 3 and 10.
TEST(Utf8, RefusesWhatItsStandardForbids) {
  EXPECT_TRUE(isUtf8(""));
  EXPECT_TRUE(isUtf8("\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF"));  // beside the surrogates, and the largest
  for (const char* text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x89", "\xF0\xA3\x8E", "\xC3(", "a\xE2\x28\xA1"})
    EXPECT_FALSE(isUtf8(text)) << ::testing::PrintToString(std::string(text));
}

}  // namespace
}  // namespace fuseline::testing
