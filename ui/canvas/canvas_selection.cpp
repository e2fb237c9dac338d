// The selection of the canvas, by the mouse and by keys.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/canvas_selection.h"

#include "ui/canvas/canvas_geometry.h"
#include "ui/theme/format.h"

#include <QScopedValueRollback>

#include <cmath>
#include <utility>

namespace fuseline::ui {

CanvasSelection::CanvasSelection(const CanvasParts& parts) : m_parts(parts) {
  connect(&parts.scope, &CanvasScope::selectionChanged, this, [this] {
    show();
    if (!m_isTaking) m_parts.frames.clearSelection();
  });
}

void CanvasSelection::show() {
  const QScopedValueRollback guard(m_isShowing, true);
  const QSet<QString>& ids = m_parts.scope.selection();
  const auto nodeOf = [this](const QString& id) { return m_parts.items.node(id.toStdString()); };
  for (QGraphicsItem* item : m_parts.scene.selectedItems()) {
    const auto* node = dynamic_cast<const NodeItem*>(item);
    const QString id = node ? toQt(node->look().id) : QString();
    if (node && nodeOf(id) == node && !ids.contains(id)) item->setSelected(false);
  }
  for (const QString& id : ids)
    if (NodeItem* node = nodeOf(id)) node->setSelected(true);
  m_parts.items.markChosenHull();
}

void CanvasSelection::take() {
  if (m_isShowing) return;
  QSet<QString> ids;
  for (const std::string& id : m_parts.items.selectedNodes()) ids.insert(toQt(id));
  const QScopedValueRollback guard(m_isTaking, true);
  m_parts.scope.select(ids);
}

void CanvasSelection::selectNeighbour(QPointF direction) {
  const NodeItem* current = m_parts.items.node(m_parts.scope.singleSelection().toStdString());
  const NodeItem* best = nullptr;
  std::optional<double> bestCost;
  for (const auto& [id, item] : m_parts.items.nodes()) {
    if (item == current) continue;
    const std::optional<double> cost =
        current ? costOfWay(item->sceneBox().center() - current->sceneBox().center(), direction) : item->pos().x();
    if (!cost || (bestCost && *bestCost <= *cost)) continue;
    best = item;
    bestCost = cost;
  }
  if (best) m_parts.scope.select({toQt(best->look().id)});
}

void CanvasSelection::followWire(bool isDownstream) {
  const CanvasItems& items = m_parts.items;
  const NodeItem* current = items.node(m_parts.scope.singleSelection().toStdString());
  if (!current) return;
  const auto offRow = [&](const NodeItem* item) {
    return std::abs(item->sceneBox().center().y() - current->sceneBox().center().y());
  };
  const NodeItem* next = nullptr;
  for (const LinkItem* link : items.links()) {
    const auto& [here, there] =
        isDownstream ? std::pair(link->link().from, link->link().to) : std::pair(link->link().to, link->link().from);
    const NodeItem* end = here.node == current->look().id ? items.node(there.node) : nullptr;
    if (end && (!next || offRow(end) < offRow(next))) next = end;
  }
  if (next) m_parts.scope.select({toQt(next->look().id)});
}

void CanvasSelection::selectReachable(const std::string& id, FlowDirection direction) {
  QSet<QString> ids = m_parts.scope.selection();
  for (const std::string& found : reachable(m_parts.scope.document(), id, direction)) ids.insert(toQt(found));
  m_parts.scope.select(ids);
}

void CanvasSelection::selectReachable(FlowDirection direction) {
  if (m_parts.scope.selection().isEmpty()) return Q_EMIT hint(tr("No ops are selected. Select the ops to start from."));
  for (const QString& id : QSet<QString>(m_parts.scope.selection())) selectReachable(id.toStdString(), direction);
}

bool CanvasSelection::isOver(QPointF position) const {
  return !m_parts.items.nodeAt(position).empty() || m_parts.items.hullAt(position) ||
         m_parts.frames.handleAt(position, FrameLayer::Locked::Included);
}

bool CanvasSelection::chooseHullAt(QPointF position) {
  const HullItem* hull = m_parts.items.hullAt(position);
  if (!hull) return false;
  const HullLook& look = hull->look();
  const QSet<QString> owners(look.owners.begin(), look.owners.end());
  m_parts.scope.isInside() ? m_parts.scope.select(owners) : m_parts.session.selection().selectFusion(owners, look.rule);
  return true;
}

void CanvasSelection::selectForMenu(QPointF position) {
  if (const QString id = toQt(m_parts.items.nodeAt(position)); !id.isEmpty()) {
    if (!m_parts.scope.selection().contains(id)) m_parts.scope.select({id});
    return;
  }
  const FrameItem* frame = m_parts.frames.handleAt(position, FrameLayer::Locked::Included);
  if (frame && !frame->isSelected()) m_parts.frames.select(frame->frame().id);
}

bool CanvasSelection::addByPress(const std::string& id, Qt::KeyboardModifiers modifiers) {
  if (modifiers == (Qt::ShiftModifier | Qt::AltModifier))
    selectReachable(id, FlowDirection::Upstream);
  else if (modifiers == (Qt::ControlModifier | Qt::AltModifier))
    selectReachable(id, FlowDirection::Downstream);
  else if (modifiers == Qt::ShiftModifier)
    m_parts.scope.select(m_parts.scope.selection() + QSet<QString>{toQt(id)});
  else
    return false;
  return true;
}

}  // namespace fuseline::ui
