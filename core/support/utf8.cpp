// Decodes by the number of bytes that the first byte announces.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/utf8.h"

#include <array>
#include <cstddef>

namespace fuseline {

namespace {

/// 0: the byte begins no character.
std::size_t lengthBy(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

}  // namespace

std::optional<Character> firstCharacter(std::string_view text) {
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lengthBy(lead);
  if (length == 0 || length > text.size()) return std::nullopt;
  char32_t code = length == 1 ? lead : lead & (0x7FU >> length);
  for (const char byte : text.substr(1, length - 1)) {
    if ((static_cast<unsigned char>(byte) & 0xC0U) != 0x80U) return std::nullopt;
    code = (code << 6U) | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  const bool isSurrogate = code >= 0xD800 && code < 0xE000;
  if (code < kSmallest[length] || code > 0x10FFFF || isSurrogate) return std::nullopt;
  return Character{.code = code, .bytes = text.substr(0, length)};
}

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::optional<Character> character = firstCharacter(text);
    if (!character) return false;
    text.remove_prefix(character->bytes.size());
  }
  return true;
}

}  // namespace fuseline
