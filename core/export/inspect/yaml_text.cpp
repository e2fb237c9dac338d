// Escapes characters that have a meaning in YAML and regular expressions.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/inspect/yaml_text.h"

#include "core/support/utf8.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

template <class Visit>
void forEachCharacter(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const Character character =
        firstCharacter(text).value_or(Character{.code = kReplacement, .bytes = text.substr(0, 1)});
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
