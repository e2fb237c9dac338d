// A small JSON writer; nlohmann's has no way to say "inline where it fits".
// SPDX-License-Identifier: Apache-2.0
#include "core/document/json_text.h"

#include "core/support/text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::size_t kLineWidth = 120;

// Length of a UTF-8 sequence by its first byte, 0 if none begins so, with the smallest code point it may hold.
struct Sequence {
  std::size_t length = 0;
  std::uint32_t bits = 0;
  std::uint32_t smallest = 0;
};

Sequence sequenceOf(unsigned char first) {
  if (first < 0x80) return {1, first, 0};
  if ((first & 0xE0U) == 0xC0U) return {2, first & 0x1FU, 0x80};
  if ((first & 0xF0U) == 0xE0U) return {3, first & 0x0FU, 0x800};
  if ((first & 0xF8U) == 0xF0U) return {4, first & 0x07U, 0x10000};
  return {};
}

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

bool isUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const Sequence sequence = sequenceOf(static_cast<unsigned char>(text[i]));
    if (sequence.length == 0 || sequence.length > text.size() - i) return false;
    std::uint32_t point = sequence.bits;
    for (std::size_t k = 1; k < sequence.length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0U) != 0x80U) return false;
      point = (point << 6U) | (next & 0x3FU);
    }
    if (point < sequence.smallest || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
    i += sequence.length;
  }
  return true;
}

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
