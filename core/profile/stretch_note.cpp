// Notes on stretches, as JSON and in words.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/stretch_note.h"

#include "core/support/field_bounds.h"
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

const FieldTable<StretchNote>& fieldsOf(const StretchNote*) {
  static const FieldTable<StretchNote> table(
      {newField("variant", &StretchNote::variant, "unfused or fused; empty: all."),
       amount(field("startNs", &StretchNote::startNs, "In ns since the round began.")),
       amount(field("endNs", &StretchNote::endNs, "In ns since the round began.")),
       field("text", &StretchNote::text, "The user's note.")});
  return table;
}

std::string stretchNoteLine(const StretchNote& note) {
  return fmt::format("{}, {} to {}: {}", note.variant.empty() ? "all plans" : note.variant,
                     formatDuration(note.startNs), formatDuration(note.endNs), note.text);
}

}  // namespace fuseline
