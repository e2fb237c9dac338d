// Notes on stretches, as JSON and in words.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/stretch_note.h"

#include "core/support/json_fields.h"
#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

bool StretchNote::isOfSameStretch(const StretchNote& other) const {
  return variant == other.variant && startNs == other.startNs && endNs == other.endNs;
}

void putStretchNote(std::vector<StretchNote>& notes, const StretchNote& given) {
  std::erase_if(notes, [&](const StretchNote& note) { return note.isOfSameStretch(given); });
  if (given.text.empty()) return;
  const auto isBehind = [&](const StretchNote& note) { return note.startNs > given.startNs; };
  notes.insert(std::ranges::find_if(notes, isBehind), given);
}

Json toJson(const std::vector<StretchNote>& notes) {
  Json list = Json::array();
  for (const StretchNote& note : notes)
    list.push_back({{"variant", note.variant}, {"startNs", note.startNs}, {"endNs", note.endNs}, {"text", note.text}});
  return list;
}

void readStretchNotes(JsonFields& fields, const char* key, std::vector<StretchNote>& notes) {
  const auto read = [&](JsonFields& item) {
    StretchNote& note = notes.emplace_back();
    item.read("variant", note.variant, Presence::Optional);
    item.read("startNs", note.startNs);
    item.read("endNs", note.endNs);
    item.read("text", note.text);
  };
  fields.readObjects(key, read, Presence::Optional);
}

std::string stretchNoteLine(const StretchNote& note) {
  return fmt::format("{}, {} to {}: {}", note.variant.empty() ? "all plans" : note.variant,
                     formatDuration(note.startNs), formatDuration(note.endNs), note.text);
}

}  // namespace fuseline
