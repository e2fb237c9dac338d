// Quotes fields that need quotes, and marks as text the fields that spreadsheets would execute.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/csv.h"

#include "core/support/visible_text.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace fuseline {

namespace {

bool isNumber(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc() && stop == end;
}

/// Spreadsheets take a cell that begins so for a formula. Source: OWASP, "CSV Injection".
bool isFormula(std::string_view text) {
  if (text.empty()) return false;
  return text.front() == '=' || text.front() == '@' ||
         ((text.front() == '+' || text.front() == '-') && !isNumber(text));
}

/// Quoted fields may contain line breaks.
std::string withLineBreaks(std::string_view text) {
  std::string result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (begin > 0) result += '\n';
    result += visibleText(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

}  // namespace

std::string csvField(std::string_view text) {
  const std::string shown = (isFormula(text) ? "'" : "") + withLineBreaks(text);
  if (shown.find_first_of(",\"\n") == std::string::npos) return shown;
  std::string quoted = "\"";
  for (const char c : shown) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string csvLine(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) line += csvField(field) + ',';
  if (!line.empty()) line.pop_back();
  return line + "\r\n";
}

}  // namespace fuseline
