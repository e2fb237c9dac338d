// Reads fields by name and type. What is repeated, unknown or of the wrong type is reported with its place.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/field_reader.h"

#include "core/support/text.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view kindOf(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "a list";
    case Json::value_t::string: return "text";
    case Json::value_t::boolean: return "true or false";
    case Json::value_t::number_float: return "a real number";
    default: return "an integer";
  }
}

}  // namespace

bool FieldReader::parse(JsonTree::SyntaxError& error) {
  if (m_file) {
    m_tree = JsonTree::of(*m_file, error);
    return !m_tree.isEmpty();
  }
  if (m_text.starts_with(kByteOrderMark)) {
    m_start = kByteOrderMark.size();
    report(Severity::Note, "byte-order-mark", 0, "",
           "The file begins with a byte-order mark, which JSON does not allow. It will not be written again.");
  }
  m_tree = JsonTree::parse(m_text.substr(m_start), error);
  return !m_tree.isEmpty();
}

FieldReader::Fields FieldReader::openObject(Index i, const std::string& pointer, Json& extra,
                                            std::initializer_list<std::string_view> known) {
  return openObject(i, pointer, extra, std::span(known.begin(), known.size()));
}

FieldReader::Fields FieldReader::openObject(Index i, const std::string& pointer, Json& extra,
                                            std::span<const std::string_view> known) {
  Fields fields;
  std::vector<std::pair<std::string, Json>> unknown;
  forEachMember(i, pointer, [&](std::string_view name, Index value, const std::string& memberPointer) {
    const bool isKnown = std::ranges::find(known, name) != known.end();
    if (isKnown) {
      fields.emplace(name, value);
      locate(value, memberPointer);
    } else {
      unknown.emplace_back(name, m_tree.json(value));
      noteDuplicatesBelow(value, memberPointer);
      warnOfUnknown(name, value, memberPointer, known);
    }
  });
  auto& bag = extra.get_ref<Json::object_t&>();
  for (auto& [name, value] : unknown) bag.push_back({std::move(name), std::move(value)});
  return fields;
}

/// Fields of later versions are kept without a word; one that is nearly a known one, or belongs elsewhere, is not.
void FieldReader::warnOfUnknown(std::string_view name, Index value, const std::string& pointer,
                                std::span<const std::string_view> known) {
  const bool isOfFile = pointer.find('/', 1) != std::string::npos && std::ranges::count(m_fileFields, name) > 0;
  const std::string meant = isOfFile ? std::string() : misspelt(name, known);
  if (!isOfFile && meant.empty()) return;
  const std::string hint = isOfFile ? fmt::format("\"{}\" belongs in the outermost object of the file.", name)
                                    : fmt::format("Did you mean \"{}\"?", meant);
  report(Severity::Warning, "unknown-field", m_tree[value].offset, pointer,
         fmt::format("\"{}\" is not a field of this object and has no effect. {}", name, hint));
}

void FieldReader::reportDuplicate(const std::string& name, const std::string& pointer, Index first, Index second) {
  const auto [line, column] = place(m_tree[first].offset);
  report(Severity::Error, "duplicate-key", m_tree[second].offset, pointer,
         fmt::format(
             "The key \"{}\" occurs twice in one object, first in line {}, column {}. The second value {} is ignored.",
             name, line, column, excerpt(second + 1)));
}

void FieldReader::noteDuplicates(Index i, const std::string& pointer) {
  forEachMember(i, pointer, [&](std::string_view, Index value, const std::string& memberPointer) {
    noteDuplicatesBelow(value, memberPointer);
  });
}

void FieldReader::noteDuplicatesBelow(Index i, const std::string& pointer) {
  if (m_tree.isObject(i)) return noteDuplicates(i, pointer);
  if (!m_tree.isArray(i)) return;
  std::size_t index = 0;
  for (const JsonTree::Child& child : m_tree.children(i))
    noteDuplicatesBelow(child.value, fmt::format("{}/{}", pointer, index++));
}

bool FieldReader::isItem(Index i, const std::string& pointer, std::string_view what, Json& extra, Severity severity) {
  locate(i, pointer);
  if (m_tree.isObject(i)) return true;
  report(severity, "wrong-type", m_tree[i].offset, pointer,
         fmt::format("Expected {} (an object), found {}.", what, excerpt(i)));
  extra = m_tree.json(i);
  return false;
}

std::optional<FieldReader::Index> FieldReader::find(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::nullopt : std::optional(found->second);
}

std::optional<FieldReader::Index> FieldReader::object(const Fields& fields, std::string_view name,
                                                      const std::string& pointer, Json& extra) {
  const auto i = find(fields, name);
  if (!i || m_tree.isObject(*i)) return i;
  wrongType(*i, fmt::format("{}/{}", pointer, name), "an object", extra, name);
  return std::nullopt;
}

std::string FieldReader::string(const Fields& fields, std::string_view name, const std::string& pointer, Json& extra) {
  const auto i = find(fields, name);
  if (!i) return {};
  if (m_tree.isString(*i)) return m_tree.text(*i);
  wrongType(*i, fmt::format("{}/{}", pointer, name), "text", extra, name);
  return {};
}

std::optional<bool> FieldReader::boolean(const Fields& fields, std::string_view name, const std::string& pointer,
                                         Json& extra, Severity severity) {
  const auto i = find(fields, name);
  if (!i) return std::nullopt;
  if (m_tree[*i].scalar.is_boolean()) return m_tree[*i].scalar.get<bool>();
  wrongType(*i, fmt::format("{}/{}", pointer, name), "true or false", extra, name, severity);
  return std::nullopt;
}

std::optional<std::string> FieldReader::text(const Fields& fields, std::string_view name, const std::string& pointer,
                                             Json& extra) {
  const auto i = find(fields, name);
  if (!i) return std::nullopt;
  if (m_tree.isString(*i)) return m_tree.text(*i);
  wrongType(*i, fmt::format("{}/{}", pointer, name), "text", extra, name, Severity::Warning);
  return std::nullopt;
}

std::vector<int> FieldReader::integers(Index i) const {
  std::vector<int> values;
  for (const JsonTree::Child& part : m_tree.isArray(i) ? m_tree.children(i) : std::vector<JsonTree::Child>{}) {
    const Json& value = m_tree[part.value].scalar;
    if (!value.is_number_integer() || value < std::numeric_limits<int>::min() ||
        value > std::numeric_limits<int>::max())
      return {};
    values.push_back(value.get<int>());
  }
  return values;
}

void FieldReader::wrongType(Index i, const std::string& pointer, std::string_view expected, Json& extra,
                            std::string_view name, Severity severity) {
  if (!extra.is_object()) extra = Json::object();
  extra.get_ref<Json::object_t&>().push_back({std::string(name), m_tree.json(i)});
  report(severity, "wrong-type", m_tree[i].offset, pointer,
         fmt::format("\"{}\" is {} ({}); expected {}.", name, excerpt(i), kind(i), expected));
}

std::string_view FieldReader::kind(Index i) const { return kindOf(m_tree[i].scalar); }

std::string FieldReader::excerpt(Index i) const {
  if (m_tree.isObject(i)) return "{...}";
  if (m_tree.isArray(i)) return m_tree[i].end == i + 1 ? "[]" : "[...]";
  return shortened(inlineText(m_tree[i].scalar));
}

std::pair<int, int> FieldReader::place(std::size_t offset) const { return m_lines.place(m_start + offset); }

void FieldReader::locate(Index i, const std::string& pointer) {
  const auto [line, column] = place(m_tree[i].offset);
  m_sourceMap.places.insert_or_assign(pointer, SourceMap::Place{line, column});
}

void FieldReader::locateAll(Index i, const std::string& pointer) {
  locate(i, pointer);
  std::size_t index = 0;
  for (const JsonTree::Child& child : m_tree.children(i)) {
    const std::string name = m_tree.isObject(i) ? escapedPointer(m_tree.text(child.key)) : std::to_string(index++);
    locateAll(child.value, pointer + "/" + name);
  }
}

void FieldReader::report(Severity severity, std::string code, std::size_t offset, std::string pointer,
                         std::string message) {
  const auto [line, column] = place(offset);
  m_diagnostics.push_back({.severity = severity,
                           .code = std::move(code),
                           .pointer = std::move(pointer),
                           .line = line,
                           .column = column,
                           .message = std::move(message)});
}

}  // namespace fuseline
