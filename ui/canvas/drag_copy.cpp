// Draws what is dragged: the nodes themselves, as pale as ghosts.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/drag_copy.h"

#include "ui/canvas/metrics.h"

#include <QPen>

#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kOpacity = 0.65;
constexpr double kAboveNodes = 15.0;
constexpr double kLeastDragPx = 4.0;

}  // namespace

DragCopy::DragCopy(QGraphicsScene& scene, const Theme& theme, const Content& content, QPointF from)
    : m_scene(&scene), m_theme(theme), m_fragment(content.fragment), m_from(from), m_copies(scene.addRect({})) {
  m_copies->setZValue(kAboveNodes);
  m_copies->setOpacity(kOpacity);
  m_copies->hide();
  for (const FrameItem* frame : content.frames) add(*frame);
  for (const LinkItem* link : content.links) add(*link, content);
  for (const auto& [id, node] : content.nodes) add(*node);
}

DragCopy::~DragCopy() {
  if (m_scene) delete m_copies;
}

void DragCopy::add(const NodeItem& node) {
  auto* copy = new NodeItem(node.look(), m_theme);
  copy->setFlags({});
  copy->setParentItem(m_copies);
  copy->setPos(node.pos());
}

void DragCopy::add(const LinkItem& link, const Content& content) {
  const Link& ends = link.link();
  const auto from = content.nodes.at(ends.from.node)->portPosition({ends.from.node, ends.from.port, true});
  const auto to = content.nodes.at(ends.to.node)->portPosition({ends.to.node, ends.to.port, false});
  if (!from || !to) return;
  auto* copy = new QGraphicsPathItem(wirePath(*from, *to), m_copies);
  copy->setPen(QPen(m_theme.colors().accent, 2.0));
}

void DragCopy::add(const FrameItem& frame) {
  auto* copy = new QGraphicsRectItem(frame.sceneBox(), m_copies);
  copy->setPen(QPen(m_theme.colors().accent, 1.6, Qt::DashLine));
}

void DragCopy::moveTo(QPointF place) {
  const QPointF way = place - m_from;
  if (std::hypot(way.x(), way.y()) >= kLeastDragPx) m_copies->show();
  m_copies->setPos(onGrid(way.x()), onGrid(way.y()));
}

}  // namespace fuseline::ui
