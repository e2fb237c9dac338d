// Escapes characters that have a meaning in YAML and regular expressions.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/inspect/yaml_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

struct Character {
  char32_t code = kReplacement;
  std::string_view bytes;
};

/// Number of bytes after the lead byte; -1: the byte begins no character.
int numFollowing(unsigned char lead) {
  if (lead < 0x80) return 0;
  if (lead >= 0xC2 && lead < 0xE0) return 1;
  if (lead >= 0xE0 && lead < 0xF0) return 2;
  return lead >= 0xF0 && lead < 0xF5 ? 3 : -1;
}

/// Longer forms than needed, and halves of surrogate pairs, are no UTF-8.
bool isScalar(char32_t code, int following) {
  constexpr std::array<char32_t, 4> kSmallest = {0, 0x80, 0x800, 0x10000};
  const bool isSurrogate = code >= 0xD800 && code < 0xE000;
  return code >= kSmallest[static_cast<std::size_t>(following)] && code <= 0x10FFFF && !isSurrogate;
}

/// The first of a text that is not empty. Source: RFC 3629.
Character firstOf(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const int following = numFollowing(lead);
  const std::size_t size = static_cast<std::size_t>(std::max(following, 0)) + 1;
  if (following < 0 || size > text.size()) return {.bytes = text.substr(0, 1)};
  char32_t code = following == 0 ? lead : lead & (0x3F >> following);
  for (const char byte : text.substr(1, size - 1)) {
    if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) return {.bytes = text.substr(0, 1)};
    code = (code << 6) | (static_cast<unsigned char>(byte) & 0x3F);
  }
  if (!isScalar(code, following)) return {.bytes = text.substr(0, 1)};
  return {.code = code, .bytes = text.substr(0, size)};
}

template <class Visit>
void forEachCharacter(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const Character character = firstOf(text);
    visit(character);
    text.remove_prefix(character.bytes.size());
  }
}

/// Printable, on one line, and itself. Source: YAML 1.2.2, productions 1 and 24, and the line breaks of YAML 1.1.
bool isPlain(const Character& character) {
  constexpr std::array<char32_t, 3> kBreaksAndMark = {0x2028, 0x2029, 0xFEFF};
  const char32_t code = character.code;
  if (code == kReplacement || std::ranges::find(kBreaksAndMark, code) != kBreaksAndMark.end()) return false;
  return (code >= 0x20 && code < 0x7F) || (code >= 0xA0 && code < 0xFFFE) || code >= 0x10000;
}

bool isAllPlain(std::string_view text) {
  bool isAll = true;
  forEachCharacter(text, [&](const Character& character) { isAll = isAll && isPlain(character); });
  return isAll;
}

std::string escaped(const Character& character) {
  const auto code = static_cast<std::uint32_t>(character.code);
  if (code == '"' || code == '\\') return fmt::format("\\{}", character.bytes);
  if (isPlain(character)) return std::string(character.bytes);
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

std::string singleQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + '\'';
}

std::string doubleQuoted(std::string_view text) {
  std::string quoted = "\"";
  forEachCharacter(text, [&](const Character& character) { quoted += escaped(character); });
  return quoted + '"';
}

}  // namespace

std::string yamlText(std::string_view text) { return isAllPlain(text) ? singleQuoted(text) : doubleQuoted(text); }

std::string yamlComment(std::string_view text) {
  std::string comment;
  forEachCharacter(text, [&](const Character& character) {
    comment += isPlain(character) ? character.bytes : std::string_view("?");
  });
  return comment;
}

std::string regexText(std::string_view text) {
  constexpr std::string_view kSpecial = R"(\.^$*+?{}[]|())";
  std::string pattern;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace fuseline
