// StretchNote: a user's note about a time range of a run's timeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace fuseline {

template <class T>
class FieldTable;

struct StretchNote {
  std::string variant;   // "unfused" or "fused"; empty: all variants
  double startNs = 0.0;  // since the run began
  double endNs = 0.0;
  std::string text;

  bool isOfSameStretch(const StretchNote& other) const;
  bool operator==(const StretchNote&) const = default;
};

/// Replaces the note about the same time range; an empty text removes it. Notes are ordered by start.
void putStretchNote(std::vector<StretchNote>& notes, const StretchNote& given);

const FieldTable<StretchNote>& fieldsOf(const StretchNote*);

/// "fused, 12.3 us to 15.6 us: the copy waits": a line for people.
std::string stretchNoteLine(const StretchNote& note);

}  // namespace fuseline
