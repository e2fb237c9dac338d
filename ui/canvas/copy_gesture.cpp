// A drag with Alt: what is copied stays where it is.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/copy_gesture.h"

#include "core/edit/apply_edit.h"
#include "ui/theme/format.h"

#include <utility>

namespace fuseline::ui {

CopyGesture::CopyGesture(const CanvasParts& parts, CanvasCommands& commands) : m_parts(parts), m_commands(commands) {}

CopyGesture::~CopyGesture() = default;

bool CopyGesture::begin(const std::string& id, QPointF position) {
  if (!m_parts.scope.selection().contains(toQt(id))) m_parts.scope.select({toQt(id)});
  const DragCopy::Content copied = content();
  if (copied.nodes.empty()) return false;
  m_copy = std::make_unique<DragCopy>(m_parts.scene, m_parts.theme, copied, position);
  return true;
}

DragCopy::Content CopyGesture::content() const {
  DragCopy::Content content;
  PipelineDocument placed = m_parts.scope.document();
  for (const Edit& place : m_parts.items.missingPlaces()) (void)applyEdit(placed, place);
  content.fragment = copyFragment(placed, m_parts.scope.selection(), m_parts.frames.selected());
  for (const auto& [id, item] : m_parts.items.nodes())
    if (item->look().kind == NodeKind::Op && m_parts.scope.selection().contains(toQt(id))) content.nodes[id] = item;
  for (const LinkItem* item : m_parts.items.links())
    if (content.nodes.contains(item->link().from.node) && content.nodes.contains(item->link().to.node))
      content.links.push_back(item);
  for (const std::string& id : m_parts.frames.selected()) content.frames.push_back(m_parts.frames.item(id));
  return content;
}

void CopyGesture::moveTo(QPointF position) {
  const bool wasDragged = m_copy->isDragged();
  m_copy->moveTo(position);
  if (m_copy->isDragged() && !wasDragged) Q_EMIT hint(tr("Release to place the copy here. Esc: cancel."));
}

void CopyGesture::finish() {
  const std::unique_ptr<DragCopy> copy = std::move(m_copy);
  Q_EMIT hint({});
  if (!copy->isDragged()) return;
  auto pasted = pasteFragment(m_parts.scope.document(), copy->fragment(), copy->offset());
  if (!pasted) return;
  std::vector<Edit> edits = m_parts.items.missingPlaces();
  edits.push_back(std::move(pasted->edit));
  const auto count = pasted->ids.size();
  const std::string label = "Duplicate " + std::to_string(count) + (count == 1 ? " node" : " nodes");
  pasted->edit = EditGroup{.label = label, .edits = std::move(edits)};
  m_commands.apply(*pasted);
}

bool CopyGesture::cancel() {
  if (!m_copy) return false;
  m_copy.reset();
  Q_EMIT hint({});
  return true;
}

}  // namespace fuseline::ui
