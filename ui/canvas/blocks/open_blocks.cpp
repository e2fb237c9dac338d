// Moves places apart, and edits of them back.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/blocks/open_blocks.h"

#include "core/edit/apply_edit.h"

#include <utility>

namespace fuseline::ui {

void OpenBlocks::toggle(const std::string& place) {
  if (m_places.erase(place) == 0) m_places.insert(place);
}

void OpenBlocks::follow(const PipelineDocument& document, const std::vector<NodeLook>& looks,
                        const NodePositions& places, Insides insides) {
  m_insides = std::move(insides);
  m_across = {};
  m_down = {};
  m_shown.reset();
  if (m_insides.empty()) return;
  for (const NodeLook& look : looks) {
    const auto open = m_insides.find(look.id);
    if (open == m_insides.end()) continue;
    const QSize closed = look.size().toSize();
    const QSize more = open->second->size.toSize() - closed;
    const Position& place = places.at(look.id);
    if (more.width() > 0) m_across.add(place.x + closed.width(), more.width());
    if (more.height() > 0) m_down.add(place.y + closed.height(), more.height());
  }
  EditGroup group{.label = {}, .edits = {}};
  for (const auto& [id, place] : places) group.edits.push_back(MoveNode{.id = id, .position = shownAt(place)});
  for (DocumentFrame frame : document.frames()) {
    if (!frame.area) continue;
    frame.area = shownArea(*frame.area);
    group.edits.push_back(ReplaceFrame{std::move(frame)});
  }
  m_shown = document;
  if (!applyEdit(*m_shown, group)) m_shown.reset();
}

std::shared_ptr<const BlockInside> OpenBlocks::inside(const std::string& id) const {
  const auto found = m_insides.find(id);
  return found == m_insides.end() ? nullptr : found->second;
}

FrameArea OpenBlocks::shownArea(const FrameArea& area) const {
  const Position corner = shownAt({area.x, area.y});
  const Position end = shownAt({area.x + area.width, area.y + area.height});
  return {corner.x, corner.y, end.x - corner.x, end.y - corner.y};
}

FrameArea OpenBlocks::areaOf(const FrameArea& shown) const {
  const Position corner{m_across.place(shown.x), m_down.place(shown.y)};
  return {corner.x, corner.y, m_across.place(shown.x + shown.width) - corner.x,
          m_down.place(shown.y + shown.height) - corner.y};
}

Edit OpenBlocks::inDocument(const Edit& edit) const {
  if (!m_shown) return edit;
  Edit own = edit;
  if (auto* group = std::get_if<EditGroup>(&own))
    for (Edit& part : group->edits) part = inDocument(part);
  if (auto* moved = std::get_if<MoveNode>(&own); moved && moved->position)
    moved->position = Position{m_across.place(moved->position->x), m_down.place(moved->position->y)};
  if (auto* added = std::get_if<AddFrame>(&own); added && added->frame.area)
    added->frame.area = areaOf(*added->frame.area);
  if (auto* replaced = std::get_if<ReplaceFrame>(&own); replaced && replaced->frame.area)
    replaced->frame.area = areaOf(*replaced->frame.area);
  return own;
}

}  // namespace fuseline::ui
