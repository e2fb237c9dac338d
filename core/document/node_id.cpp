// Refuses terminal control characters, invisible characters, and separators of names.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/node_id.h"

#include "core/support/json.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
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

}  // namespace

Verdict checkId(std::string_view id) {
  if (id.empty()) return Verdict::no("An id must not be empty.");
  if (!isUtf8(id)) return Verdict::no("An id must be UTF-8 text.");
  if (hasControls(id)) return Verdict::no("The id contains invisible characters. Remove them.");
  // '.' separates op and port, '/', ':' and '@' separate parts of tensor names in files.
  const std::size_t bad = id.find_first_of("./:@ \t\r\n\"");
  if (bad == std::string_view::npos) return Verdict::yes();
  return Verdict::no(fmt::format("The id \"{}\" contains {}; expected an id without spaces and . / : @ \".", id,
                                 id[bad] == ' ' ? "a space" : fmt::format("{}", Json(std::string(1, id[bad])).dump())));
}

}  // namespace fuseline
