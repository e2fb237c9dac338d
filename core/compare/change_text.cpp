// Words and signs of changes.
// SPDX-License-Identifier: Apache-2.0
#include "core/compare/change_text.h"

#include "core/document/json_text.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

char markOf(DocumentChange::Kind kind) {
  switch (kind) {
    case DocumentChange::Kind::Added: return '+';
    case DocumentChange::Kind::Removed: return '-';
    case DocumentChange::Kind::Changed: return '~';
    case DocumentChange::Kind::Renamed: return '>';
  }
  return ' ';
}

namespace {

/// The nodes of an External may have megabytes.
std::string valueText(const std::string& value) {
  constexpr std::size_t kLongest = 200;
  if (value.empty()) return "-";
  return value.size() > kLongest ? fmt::format("{} ({} characters)", shortened(value), value.size()) : value;
}

}  // namespace

std::string fieldText(const FieldChange& field, DocumentChange::Kind kind) {
  const std::string name = field.name.empty() ? "" : field.name + " ";
  if (kind == DocumentChange::Kind::Added) return name + shortened(field.next);
  if (kind == DocumentChange::Kind::Removed) return name + shortened(field.base);
  return fmt::format("{}{} -> {}", name, valueText(field.base), valueText(field.next));
}

std::string fieldsText(const DocumentChange& change) {
  std::vector<std::string> fields;
  for (const FieldChange& field : change.fields) fields.push_back(fieldText(field, change.kind));
  if (!change.newId.empty()) fields.push_back("-> " + change.newId);
  return fmt::format("{}", fmt::join(fields, ", "));
}

std::string changeText(const DocumentChange& change) {
  return fmt::format("{} {}{}{}", markOf(change.kind), change.id, change.id.empty() ? "" : "  ", fieldsText(change));
}

}  // namespace fuseline
