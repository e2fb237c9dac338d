// Typed reading of JSON objects, with sentences for what does not fit.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/json_fields.h"

#include <limits>

#include <fmt/format.h>

namespace fuseline {

namespace {

// A run has 7 levels, a pipeline in it some more. The JSON library copies, writes and destroys level by level.
constexpr int kMaxDepth = 200;

bool isTooDeep(std::string_view text) {
  int depth = 0;
  bool isInText = false;
  for (std::size_t i = 0; i < text.size() && depth <= kMaxDepth; ++i) {
    const char c = text[i];
    if (isInText && c == '\\') ++i;
    if (c == '"') isInText = !isInText;
    if (isInText) continue;
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
  }
  return depth > kMaxDepth;
}

bool isSigned64(const Json& value) {
  if (!value.is_number_integer()) return false;
  return !value.is_number_unsigned() ||
         value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

template <class T>
bool allOf(const Json& array, bool (*isRight)(const Json&), std::vector<T>& out) {
  if (!array.is_array()) return false;
  std::vector<T> values;
  for (const Json& item : array) {
    if (!isRight(item)) return false;
    values.push_back(item.get<T>());
  }
  out = std::move(values);
  return true;
}

/// A short quotation for messages.
std::string quoted(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kLongest = 40;
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

}  // namespace

JsonFields::JsonFields(const Json& json, std::string pointer) : m_json(json), m_pointer(std::move(pointer)) {
  if (!m_json.is_object())
    m_error =
        Error{fmt::format("{}: expected an object, found {}.", m_pointer.empty() ? "/" : m_pointer, quoted(m_json))};
}

void JsonFields::refuse(std::string_view key, std::string_view problem) {
  if (!m_error) m_error = Error{fmt::format("{}: {}", pointerOf(key), problem)};
}

const Json* JsonFields::find(std::string_view key, Presence presence) {
  if (!m_json.is_object()) return nullptr;
  const auto found = m_json.find(std::string(key));
  if (found != m_json.end()) return &*found;
  if (presence == Presence::Required) refuse(key, "this field is missing.");
  return nullptr;
}

const Json* JsonFields::findArray(std::string_view key, Presence presence) {
  const Json* value = find(key, presence);
  if (!value || value->is_array()) return value;
  wrongType(key, "an array", *value);
  return nullptr;
}

void JsonFields::adopt(const JsonFields& nested) {
  if (!m_error) m_error = nested.m_error;
}

void JsonFields::wrongType(std::string_view key, std::string_view expected, const Json& found) {
  refuse(key, fmt::format("expected {}, found {}.", expected, quoted(found)));
}

void JsonFields::assign(const Json& value, std::string_view key, bool& out) {
  if (!value.is_boolean()) return wrongType(key, "true or false", value);
  out = value.get<bool>();
}

void JsonFields::assign(const Json& value, std::string_view key, int& out) {
  std::int64_t wide = out;
  assign(value, key, wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    return wrongType(key, "an integer of 32 bits", value);
  out = static_cast<int>(wide);
}

void JsonFields::assign(const Json& value, std::string_view key, std::int64_t& out) {
  if (!isSigned64(value)) return wrongType(key, "an integer", value);
  out = value.get<std::int64_t>();
}

void JsonFields::assign(const Json& value, std::string_view key, std::uint64_t& out) {
  if (!value.is_number_unsigned()) return wrongType(key, "a non-negative integer", value);
  out = value.get<std::uint64_t>();
}

void JsonFields::assign(const Json& value, std::string_view key, double& out) {
  if (!value.is_number()) return wrongType(key, "a number", value);
  out = value.get<double>();
}

void JsonFields::assign(const Json& value, std::string_view key, std::string& out) {
  if (!value.is_string()) return wrongType(key, "a text", value);
  out = value.get<std::string>();
}

void JsonFields::assign(const Json& value, std::string_view key, std::vector<std::string>& out) {
  if (!allOf<std::string>(
          value, [](const Json& item) { return item.is_string(); }, out))
    wrongType(key, "a list of texts", value);
}

void JsonFields::assign(const Json& value, std::string_view key, std::vector<double>& out) {
  if (!allOf<double>(
          value, [](const Json& item) { return item.is_number(); }, out))
    wrongType(key, "a list of numbers", value);
}

void JsonFields::assign(const Json& value, std::string_view key, std::vector<std::int64_t>& out) {
  if (!allOf<std::int64_t>(value, isSigned64, out)) wrongType(key, "a list of integers", value);
}

void JsonFields::assign(const Json& value, std::string_view, Json& out) { out = value; }

Result<Json> parseJson(std::string_view text) {
  if (isTooDeep(text)) return Error{fmt::format("It is nested more than {} levels deep.", kMaxDepth)};
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& problem) {
    return Error{fmt::format("This is not JSON: byte {} does not fit.", problem.byte)};
  } catch (const Json::exception&) {
    return Error{"This is not JSON: a number is out of range."};
  }
}

}  // namespace fuseline
