// Quotes what needs quotes.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/csv.h"

namespace fuseline {

std::string csvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string csvLine(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) line += csvField(field) + ',';
  if (!line.empty()) line.pop_back();
  return line + "\r\n";
}

}  // namespace fuseline
