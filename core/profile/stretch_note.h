// StretchNote: a user's note about a time range of a run's timeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <string>
#include <vector>

namespace fuseline {

class JsonFields;

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

/// [{"variant": ..., "startNs": ..., "endNs": ..., "text": ...}]
Json toJson(const std::vector<StretchNote>& notes);
/// Adds those of a list under `key` that may be absent.
void readStretchNotes(JsonFields& fields, const char* key, std::vector<StretchNote>& notes);

/// "fused, 12.3 us to 15.6 us: the copy waits": a line for people.
std::string stretchNoteLine(const StretchNote& note);

}  // namespace fuseline
