// Typed reading of JSON objects, with error messages for invalid fields.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/json_fields.h"

#include "core/support/text.h"

#include <limits>
#include <unordered_map>
#include <utility>

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
  constexpr std::size_t kLongest = 40;
  return cutText(value.dump(-1, ' ', false, Json::error_handler_t::replace), kLongest);
}

/// Builds the same tree as Json::parse(), which searches all members of an object for each new one.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string&) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // JSON has none
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& key) override {
    m_open.back().key = std::move(key);
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& problem) override {
    const bool isSyntax = dynamic_cast<const Json::parse_error*>(&problem) != nullptr;
    m_problem = isSyntax ? fmt::format("Invalid JSON at byte {}.", byte) : "Invalid JSON: a number is out of range.";
    return false;
  }

  Json take() { return std::move(m_root); }
  const std::string& problem() const { return m_problem; }

 private:
  /// An object or a list that is not closed yet. Nothing is added to those around it, so that the pointer stays good.
  struct Open {
    Json* value;
    std::string key = {};                                     // of the next member
    std::unordered_map<std::string, std::size_t> known = {};  // indices of members, used once there are many
  };
  static constexpr std::size_t kFew = 32;

  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    m_open.push_back({&place(std::move(value))});
    return true;
  }
  bool close() {
    m_open.pop_back();
    return true;
  }

  Json& place(Json value) {
    if (m_open.empty()) return m_root = std::move(value);
    Open& parent = m_open.back();
    if (parent.value->is_object()) return member(parent) = std::move(value);
    parent.value->push_back(std::move(value));
    return parent.value->back();
  }

  /// If two members have the same name, the last one is kept, as elsewhere.
  static Json& member(Open& parent) {
    auto& members = parent.value->get_ref<Json::object_t&>();
    if (members.size() < kFew) return (*parent.value)[parent.key];
    if (parent.known.empty())
      for (std::size_t i = 0; i < members.size(); ++i)
        parent.known.emplace((members.begin() + static_cast<std::ptrdiff_t>(i))->first, i);
    const auto [found, isNew] = parent.known.emplace(parent.key, members.size());
    if (isNew) members.emplace_back(parent.key, Json());
    return (members.begin() + static_cast<std::ptrdiff_t>(found->second))->second;
  }

  Json m_root;
  std::vector<Open> m_open;
  std::string m_problem;
};

}  // namespace

JsonFields::JsonFields(const Json& json, std::string pointer) : m_json(json), m_pointer(std::move(pointer)) {
  if (!m_json.is_object())
    m_error =
        Error{fmt::format("{}: expected an object, found {}.", m_pointer.empty() ? "/" : m_pointer, quoted(m_json))};
}

const Json* JsonFields::valueOf(std::string_view key) const {
  if (const auto found = m_json.find(std::string(key)); found != m_json.end()) return &*found;
  for (const auto& [name, former] : m_formerNames)
    if (name == key)
      if (const auto found = m_json.find(std::string(former)); found != m_json.end()) return &*found;
  return nullptr;
}

bool JsonFields::isNull(std::string_view key) const {
  const Json* const value = valueOf(key);
  return !value || value->is_null();
}

std::vector<std::string> JsonFields::keys() const {
  std::vector<std::string> keys;
  if (m_json.is_object())
    for (const auto& [key, unused] : m_json.items()) keys.push_back(key);
  return keys;
}

void JsonFields::refuse(std::string_view key, std::string_view problem) {
  if (!m_error) m_error = Error{fmt::format("{}: {}", pointerOf(key), problem)};
}

const Json* JsonFields::find(std::string_view key, Presence presence) {
  if (!m_json.is_object()) return nullptr;
  if (const Json* const value = valueOf(key)) return value;
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
  TreeBuilder builder;
  if (!Json::sax_parse(text, &builder)) return Error{builder.problem()};
  return builder.take();
}

}  // namespace fuseline
