// Comma-separated values (RFC 4180).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// In quotes where a reader would take it for something else; quotes are doubled. A text that a spreadsheet would run
/// as a formula gets an apostrophe in front; control characters other than line breaks become visible.
std::string csvField(std::string_view text);
/// The fields of a line, and its end.
std::string csvLine(const std::vector<std::string>& fields);

}  // namespace fuseline
