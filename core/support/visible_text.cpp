// Sources: Unicode, general categories Cc, Zl and Zp; UAX #9, section 2.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/visible_text.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace fuseline {

namespace {

struct CodePoint {
  unsigned int code = 0;
  std::size_t size = 1;
};

/// Reads one to three bytes of UTF-8; any other byte is a point of its own.
CodePoint codePointAt(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto isRest = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  if ((byte(0) & 0xE0U) == 0xC0U && isRest(1)) return {(byte(0) & 0x1FU) << 6U | (byte(1) & 0x3FU), 2};
  if ((byte(0) & 0xF0U) == 0xE0U && isRest(1) && isRest(2))
    return {(byte(0) & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU), 3};
  return {byte(0), 1};
}

bool isInvisible(const CodePoint& point) {
  struct Range {
    unsigned int first, last;
  };
  constexpr Range kMarks[] = {{0x61C, 0x61C}, {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}};
  const unsigned int code = point.code;
  if (point.size == 1) return code < 0x20 || code == 0x7F;
  if (point.size == 2 && code < 0xA0) return true;  // C1
  return std::ranges::any_of(kMarks, [&](const Range& range) { return code >= range.first && code <= range.last; });
}

}  // namespace

std::string visibleText(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const CodePoint point = codePointAt(text);
    if (isInvisible(point))
      result += fmt::format("\\u{:04x}", point.code);
    else
      result += text.substr(0, point.size);
    text.remove_prefix(point.size);
  }
  return result;
}

}  // namespace fuseline
