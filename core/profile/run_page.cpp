// Writes and finds the element that holds a run. Pages come from other machines: nothing but that element is read.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_page.h"

namespace fuseline {

namespace {

constexpr std::string_view kBegin = R"(<script type="application/json" id="fuseline-run">)";
constexpr std::string_view kEnd = "</script>";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// A "<" of JSON is always in a string, which may contain it escaped.
std::string withoutTags(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) c == '<' ? text += "\\u003c" : text += c;
  return text;
}

}  // namespace

std::string runElement(const RunRecord& record) {
  const std::string json = toJson(record).dump(-1, ' ', false, Json::error_handler_t::replace);
  return std::string(kBegin) + withoutTags(json) + std::string(kEnd);
}

std::optional<std::string_view> runTextOf(std::string_view page) {
  const std::size_t begin = page.find(kBegin);
  if (begin == std::string_view::npos) return std::nullopt;
  page.remove_prefix(begin + kBegin.size());
  const std::size_t end = page.find(kEnd);
  if (end == std::string_view::npos) return std::nullopt;
  return page.substr(0, end);
}

bool isPage(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '<';
}

}  // namespace fuseline
