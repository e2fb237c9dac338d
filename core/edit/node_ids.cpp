// Counts ids, and moves what names a node to its new id.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/node_ids.h"

#include "core/document/node_id.h"
#include "core/edit/reroutes.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

Verdict NodeIds::canTake(const std::string& id) {
  if (const Verdict verdict = checkId(id); !verdict) return verdict;
  if (count(id) == 0) return Verdict::yes();
  return Verdict::no(fmt::format("The id {} is already used; {} is available.", id, freeId(m_block, id)));
}

bool NodeIds::isUndoneByRenaming(const std::string& id, const std::string& newId) {
  return count(id) == 1 && !isNamed(newId) && checkId(id);
}

bool NodeIds::hasWires(std::string_view id) const {
  const auto touches = [&](const Wire& wire) { return wire.from.node == id || wire.to.node == id; };
  const auto reads = [&](const DocumentOutput& output) { return output.from.node == id; };
  return std::ranges::any_of(m_block.wires, touches) || std::ranges::any_of(m_block.outputs, reads);
}

bool NodeIds::isNamed(std::string_view id) const {
  return hasWires(id) || std::ranges::any_of(m_block.positions, [&](const auto& entry) {
           return entry.first == id || isRerouteAt(entry.first, id);
         });
}

int NodeIds::count(const std::string& id) {
  if (!m_counts) {
    m_counts.emplace();
    for (const DocumentInput& input : m_block.inputs) ++(*m_counts)[input.id];
    for (const DocumentOp& op : m_block.ops) ++(*m_counts)[op.id];
    for (const DocumentOutput& output : m_block.outputs) ++(*m_counts)[output.id];
  }
  const auto found = m_counts->find(id);
  return found == m_counts->end() ? 0 : found->second;
}

void NodeIds::note(const std::string& id, int change) {
  if (m_counts) (*m_counts)[id] += change;
}

void NodeIds::follow(const std::string& id, const std::string& newId) {
  for (Wire& wire : m_block.wires) {
    if (wire.from.node == id) wire.from.node = newId;
    if (wire.to.node == id) wire.to.node = newId;
  }
  for (DocumentOutput& output : m_block.outputs)
    if (output.from.node == id) output.from.node = newId;
  followPosition(id, newId);
}

void NodeIds::followPosition(const std::string& id, const std::string& newId) {
  auto& positions = m_block.positions;
  for (auto& [key, position] : positions)
    if (isRerouteAt(key, id)) key = rerouteAfterRenaming(key, id, newId);
  const auto found = std::ranges::find_if(positions, [&](const auto& entry) { return entry.first == id; });
  if (found == positions.end()) return;
  std::erase_if(positions, [&](const auto& entry) { return entry.first == newId; });
  std::ranges::find_if(positions, [&](const auto& entry) { return entry.first == id; })->first = newId;
}

}  // namespace fuseline
