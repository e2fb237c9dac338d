// Finds the op that an edit names.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/savings/repaired_attributes.h"

#include "core/document/edit.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace fuseline {

namespace {

/// The edit of an attribute in this block; nullptr: it edits something else.
const SetAttribute* attributeEdit(const Edit& edit, const std::string& block) {
  if (block.empty()) return std::get_if<SetAttribute>(&edit);
  const EditInBlock* const inside = std::get_if<EditInBlock>(&edit);
  if (!inside || inside->name != block || inside->edits.size() != 1) return nullptr;
  return std::get_if<SetAttribute>(&inside->edits.front());
}

std::optional<AttributeValue> valueOf(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return std::nullopt;
}

/// Parts of a composite op have attributes of their own.
bool isItself(const Node& node, const std::string& id) {
  return node.id == node.path && node.path.substr(node.path.rfind('.') + 1) == id;
}

}  // namespace

AttributesByNode repairedAttributes(const Graph& graph, const Attempt& attempt) {
  AttributesByNode repaired;
  if (attempt.repairs.empty()) return repaired;
  for (const NodeId id : attempt.nodes) {
    const Node& node = graph.node(id);
    const SetAttribute* const edit = attributeEdit(attempt.repairs.front().edit, node.block);
    if (!edit || edit->index >= 0 || !isItself(node, edit->id)) continue;
    std::optional<AttributeValue> value = valueOf(edit->value);
    if (!value) continue;
    Attributes attributes = node.attributes;
    attributes.set(edit->name, std::move(*value));
    repaired.emplace(id, std::move(attributes));
  }
  return repaired;
}

}  // namespace fuseline
