// Comma-separated values (RFC 4180).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// In quotes if a reader would misread it; quotes are doubled. A text that a spreadsheet would execute as a formula
/// gets a leading apostrophe; control characters other than line breaks become visible.
std::string csvField(std::string_view text);
/// The fields of a line, and its end.
std::string csvLine(const std::vector<std::string>& fields);

}  // namespace fuseline
