// Refuses terminal control characters, invisible characters, and punctuation.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/node_id.h"

#include "core/support/json.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Whether the id has terminal control characters, or ones that reverse or hide the text around them.
bool hasControls(std::string_view id) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kRanges = {
      std::pair("\xC2\x80", "\xC2\x9F"),          // C1
      std::pair("\xE2\x80\x8B", "\xE2\x80\x8F"),  // of no width, and marks of direction
      std::pair("\xE2\x80\xAA", "\xE2\x80\xAE"),  // directions
      std::pair("\xE2\x81\xA0", "\xE2\x81\xAF"), std::pair("\xEF\xBB\xBF", "\xEF\xBB\xBF")};
  if (std::ranges::any_of(id, [](char c) { return (c >= 0 && c < ' ') || c == '\x7F'; })) return true;
  for (std::size_t at = 0; at < id.size(); ++at)
    for (const auto& [first, last] : kRanges)
      if (const std::string_view part = id.substr(at, first.size()); part >= first && part <= last) return true;
  return false;
}

/// Punctuation separates ids in names of tensors, in lists and settings of the command line, in tables and in code.
bool mayBeInId(char c) { return c < 0 || std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

}  // namespace

Verdict checkId(std::string_view id) {
  if (id.empty()) return Verdict::no("An id must not be empty.");
  if (!isUtf8(id)) return Verdict::no("An id must be UTF-8 text.");
  if (hasControls(id)) return Verdict::no("The id contains invisible characters. Remove them.");
  const auto bad = std::ranges::find_if_not(id, mayBeInId);
  if (bad == id.end()) return Verdict::yes();
  return Verdict::no(fmt::format("The id \"{}\" contains {}; expected letters, digits, _ and -.", id,
                                 *bad == ' ' ? "a space" : Json(std::string(1, *bad)).dump()));
}

}  // namespace fuseline
