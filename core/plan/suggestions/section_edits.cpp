// Ops are added first, wires last: a port takes one wire.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions/section_edits.h"

#include <algorithm>
#include <utility>

namespace fuseline {

namespace {

/// Additions of ops, removals of wires, then all others.
int turnOf(const Edit& edit) {
  if (std::holds_alternative<AddOp>(edit)) return 0;
  return std::holds_alternative<RemoveWire>(edit) ? 1 : 2;
}

}  // namespace

SectionEdits::SectionEdits(const DocumentBlock& section) : m_section(section) {
  for (const DocumentInput& input : section.inputs) m_ids.insert(input.id);
  for (const DocumentOp& op : section.ops) m_ids.insert(op.id);
  for (const DocumentOutput& output : section.outputs) m_ids.insert(output.id);
}

std::optional<Wire> SectionEdits::wireTo(const Endpoint& to) const {
  const auto found = std::ranges::find(m_section.wires, to, &Wire::to);
  return found == m_section.wires.end() ? std::nullopt : std::optional(*found);
}

std::ptrdiff_t SectionEdits::numReaders(const Endpoint& from) const {
  return std::ranges::count(m_section.wires, from, &Wire::from) +
         std::ranges::count(m_section.outputs, from, &DocumentOutput::from);
}

void SectionEdits::readInstead(const Endpoint& from, const Endpoint& instead) {
  for (const Wire& wire : m_section.wires)
    if (wire.from == from) {
      remove(wire);
      add({instead, wire.to});
    }
  for (DocumentOutput output : m_section.outputs)
    if (output.from == from) {
      output.from = instead;
      m_group.edits.emplace_back(ReplaceOutput{output.id, output});
    }
}

void SectionEdits::lead(const Endpoint& to, const Endpoint& input, const Endpoint& output) {
  const std::optional<Wire> wire = wireTo(to);
  if (!wire) return;
  remove(*wire);
  add({wire->from, input});
  add({output, to});
}

std::string SectionEdits::addOp(std::string_view stem, std::string operation, Json attributes) {
  std::string id = freeId(m_ids, stem);
  m_ids.insert(id);
  m_group.edits.emplace_back(AddOp{{.id = id, .operation = std::move(operation), .attributes = std::move(attributes)}});
  return id;
}

std::string SectionEdits::addLike(const std::string& id, const Json& attributes) {
  const auto like = std::ranges::find(m_section.ops, id, &DocumentOp::id);
  Json all = like->attributes;
  all.update(attributes);
  return addOp(id, like->operation, std::move(all));
}

void SectionEdits::removeOp(const std::string& id) {
  for (const Wire& wire : m_section.wires)
    if (wire.to.node == id) remove(wire);
  m_group.edits.emplace_back(RemoveOp{id});
}

EditGroup SectionEdits::group(std::string label) && {
  m_group.label = std::move(label);
  std::ranges::stable_sort(m_group.edits, {}, turnOf);
  return std::move(m_group);
}

}  // namespace fuseline
