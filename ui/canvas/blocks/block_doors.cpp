// Asks the scope, and tells why not.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/blocks/block_doors.h"

#include "ui/theme/format.h"

namespace fuseline::ui {

void BlockDoors::tell(const Verdict& verdict) {
  if (!verdict) Q_EMIT hint(toQt(verdict.reason()));
}

void BlockDoors::enterSelected() {
  const QString id = m_parts.scope.singleSelection();
  if (!m_parts.scope.canEnter(id.toStdString()))
    return Q_EMIT hint(
        tr("No block is selected. Select an instance of a block to enter it, or press Ctrl+M to make a block."));
  tell(m_parts.scope.enter(id));
}

void BlockDoors::leave() {
  if (!m_parts.scope.isInside()) return Q_EMIT hint(tr("This is the top level of the pipeline."));
  m_parts.scope.leaveTo(m_parts.scope.path().size() - 1);
}

void BlockDoors::toggleSelected() {
  QSet<QString> blocks = m_parts.scope.selection();
  blocks.removeIf([this](const QString& id) { return !m_parts.scope.canEnter(id.toStdString()); });
  if (blocks.isEmpty())
    return Q_EMIT hint(tr("No block is selected. Select an instance of a block to open it in place."));
  for (const QString& id : std::as_const(blocks)) tell(m_parts.scope.toggleOpen(id.toStdString()));
}

bool BlockDoors::press(QPointF position) {
  const std::string id = m_parts.items.nodeAt(position);
  const bool isOnArrow = !id.empty() && m_parts.items.node(id)->isOnArrow(position);
  if (isOnArrow) tell(m_parts.scope.toggleOpen(id));
  return isOnArrow;
}

/// The second press of a fast hand is on the arrow again.
bool BlockDoors::activate(const std::string& id, QPointF position) {
  if (press(position)) return true;
  if (!m_parts.scope.canEnter(id)) return false;
  const NodeItem* inner = m_parts.items.node(id)->innerAt(position);
  tell(inner ? m_parts.scope.goTo(toQt(m_parts.scope.placeOf(id) + "." + inner->look().id))
             : m_parts.scope.enter(toQt(id)));
  return true;
}

}  // namespace fuseline::ui
