// Automatic places are those of the whole pipeline; they are computed again when its structure changes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/places/node_places.h"

#include "ui/canvas/blocks/block_inside.h"
#include "ui/session/edits.h"

#include <algorithm>
#include <ranges>

namespace fuseline::ui {

namespace {

constexpr std::size_t kManyNodes = 600;

/// Everything that the automatic layout depends on.
std::string structureOf(const PipelineDocument& document, const std::vector<NodeLook>& looks) {
  std::string text;
  for (const NodeLook& look : looks) text += look.id + "/" + std::to_string(look.size().height()) + ";";
  for (const Link& link : linksOf(document)) text += toString(link.from) + ">" + toString(link.to) + ";";
  return text;
}

}  // namespace

Position NodePlaces::of(const std::string& id) const {
  const auto found = m_positions.find(id);
  return found == m_positions.end() ? Position() : found->second;
}

std::vector<Edit> NodePlaces::missing() const {
  std::map<std::string, Position> missing = m_positions;
  for (const auto& [id, place] : m_scope.closedDocument().positions()) missing.erase(id);
  std::vector<Edit> edits;
  for (const auto& [id, place] : missing) edits.push_back(MoveNode{.id = id, .position = place});
  return edits;
}

void NodePlaces::sync(const Looks& looks, bool isStructureNew, bool isEdited) {
  const PipelineDocument& document = m_scope.document();
  if (!isStructureNew && document.positions() == m_given) return;
  m_given = document.positions();
  m_positions.clear();
  for (const auto& [id, position] : m_given) m_positions[id] = position;
  const bool isPlaced =
      std::ranges::all_of(looks, [&](const NodeLook* look) { return m_positions.contains(look->id); });
  if (isPlaced && !isEdited) forgetAutomatic();
  if (isPlaced) return;
  if (!isEdited || !keepsAutomatic(looks)) layOut(looks);
  for (const NodeLook* look : looks)
    if (const auto place = m_automatic.find(look->id); place != m_automatic.end()) m_positions.insert(*place);
  if (m_scope.isInside()) placePorts(m_positions, document);
}

bool NodePlaces::follow(const FewIds& nodes, const std::vector<NodeLook>& looks) {
  const bool isLaidOutAgain = m_positions.size() > m_given.size() && m_positions.size() <= kManyNodes;
  if (isLaidOutAgain) return false;
  const auto& given = m_scope.document().positions();
  const auto isOther = std::views::filter([&](const auto& entry) { return !nodes.contains(entry.first); });
  if (!std::ranges::equal(given | isOther, m_given | isOther)) return false;
  NodePositions places;
  for (const auto& [id, position] : given)
    if (nodes.contains(id)) places.emplace(id, position);
  for (const NodeLook& look : looks)
    if (const auto known = m_automatic.find(look.id); known != m_automatic.end()) places.insert(*known);
  if (!std::ranges::all_of(looks, [&](const NodeLook& look) { return places.contains(look.id); })) return false;
  for (const std::string& id : nodes.all()) m_positions.erase(id);
  for (const NodeLook& look : looks) m_positions[look.id] = places.at(look.id);
  m_given = given;
  return true;
}

/// Beside nodes that the user has placed, and in a pipeline that takes long to lay out, the others stay where they are.
bool NodePlaces::keepsAutomatic(const Looks& looks) const {
  return (!m_given.empty() || looks.size() > kManyNodes) && m_automaticIn == m_scope.path() &&
         std::ranges::all_of(looks, [&](const NodeLook* look) {
           return m_positions.contains(look->id) || m_automatic.contains(look->id);
         });
}

void NodePlaces::forgetAutomatic() {
  m_automatic.clear();
  m_automaticFor.clear();
  m_automaticIn.clear();
}

void NodePlaces::layOut(const Looks& looks) {
  std::vector<NodeLook> all;
  for (const NodeLook* look : looks) all.push_back(*look);
  const std::string structure = structureOf(m_scope.document(), all);
  if (structure == m_automaticFor) return;
  m_automatic = autoLayout(m_scope.document(), all);
  m_automaticFor = structure;
  m_automaticIn = m_scope.path();
}

}  // namespace fuseline::ui
