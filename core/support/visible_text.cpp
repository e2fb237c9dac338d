// Source: Unicode, general category Cc: U+0000 to U+001F, U+007F to U+009F.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/visible_text.h"

#include <fmt/format.h>

namespace fuseline {

std::string visibleText(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool isC1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // two bytes of UTF-8
    if (isC1) ++i;
    if (isC1 || byte < 0x20 || byte == 0x7F)
      result += fmt::format("\\u{:04x}", isC1 ? next : byte);
    else
      result += text[i];
  }
  return result;
}

}  // namespace fuseline
