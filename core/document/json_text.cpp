// A small JSON writer; nlohmann's has no way to say "inline where it fits".
// SPDX-License-Identifier: Apache-2.0
#include "core/document/json_text.h"

#include "core/support/text.h"
#include "core/support/utf8.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::size_t kLineWidth = 120;

std::string realText(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Appends; stops when `out` is longer than `limit`.
void appendInline(std::string& out, const Json& value, std::size_t limit) {
  if (out.size() > limit) return;
  if (value.is_object()) {
    out += '{';
    bool isFirst = true;
    for (const auto& [key, member] : value.items()) {
      if (out.size() > limit) return;
      out += isFirst ? "" : ", ";
      isFirst = false;
      out += Json(key).dump() + ": ";
      appendInline(out, member, limit);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size() && out.size() <= limit; ++i) {
      out += i == 0 ? "" : ", ";
      appendInline(out, value[i], limit);
    }
    out += ']';
  } else {
    out += value.is_number_float() ? realText(value.get<double>()) : value.dump();
  }
}

}  // namespace

bool isStorable(const Json& value) {
  if (value.is_number_float()) return std::isfinite(value.get<double>());
  if (value.is_string()) return isUtf8(value.get_ref<const std::string&>());
  if (value.is_array()) return std::ranges::all_of(value, [](const Json& item) { return isStorable(item); });
  if (!value.is_object()) return !value.is_binary() && !value.is_discarded();
  const auto& members = value.get_ref<const Json::object_t&>();
  return std::ranges::all_of(members,
                             [](const auto& member) { return isUtf8(member.first) && isStorable(member.second); });
}

std::string inlineText(const Json& value) {
  std::string out;
  appendInline(out, value, std::string::npos);
  return out;
}

std::string escapedPointer(std::string_view key) {
  std::string text;
  for (const char c : key) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = 60;
  return cutText(text, kLongest);
}

void writePretty(std::string& out, const Json& value, std::size_t indent, std::size_t used) {
  std::string text;
  appendInline(text, value, kLineWidth);
  if (!value.is_structured() || value.empty() || used + text.size() <= kLineWidth) {
    out += value.is_structured() ? text : inlineText(value);
    return;
  }
  const std::string inner(indent + 2, ' ');
  const auto& brackets = value.is_object() ? "{}" : "[]";
  out += brackets[0];
  bool isFirst = true;
  for (const auto& [key, member] : value.items()) {
    out += isFirst ? "\n" : ",\n";
    out += inner;
    isFirst = false;
    const std::string name = value.is_object() ? Json(key).dump() + ": " : "";
    out += name;
    writePretty(out, member, indent + 2, indent + 2 + name.size() + 1);
  }
  out += '\n';
  out.append(indent, ' ');
  out += brackets[1];
}

}  // namespace fuseline
