// Draws reroute points, and the wires through them.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/reroutes/reroute_item.h"

#include <QLineF>
#include <QPainter>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kDotPx = 5.0;
constexpr double kGrabPx = 10.0;
constexpr double kLeastReachPx = 12.0;
constexpr double kMostReachPx = 90.0;

QPointF directionOf(QPointF from, QPointF to) {
  const double length = QLineF(from, to).length();
  return length > 0.0 ? (to - from) / length : QPointF(1, 0);
}

}  // namespace

QPainterPath pathThrough(const std::vector<QPointF>& points) {
  std::vector<QPointF> directions(points.size(), QPointF(1, 0));
  for (std::size_t i = 1; i + 1 < points.size(); ++i) directions[i] = directionOf(points[i - 1], points[i + 1]);
  QPainterPath path(points.front());
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double reach = std::clamp(QLineF(points[i - 1], points[i]).length() * 0.4, kLeastReachPx, kMostReachPx);
    path.cubicTo(points[i - 1] + directions[i - 1] * reach, points[i] - directions[i] * reach, points[i]);
  }
  return path;
}

RerouteItem::RerouteItem(std::string id, const Theme& theme, std::function<void()> moved)
    : m_id(std::move(id)), m_theme(theme), m_moved(std::move(moved)) {
  setFlags(ItemIsMovable | ItemIsSelectable | ItemSendsGeometryChanges);
  setZValue(6);  // on its wire, below nodes
  setCursor(Qt::SizeAllCursor);
}

void RerouteItem::setColor(const QColor& color) {
  if (color == m_color) return;
  m_color = color;
  update();
}

QRectF RerouteItem::boundingRect() const { return {-kGrabPx, -kGrabPx, 2 * kGrabPx, 2 * kGrabPx}; }

QPainterPath RerouteItem::shape() const {
  QPainterPath path;
  path.addEllipse(boundingRect());
  return path;
}

void RerouteItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) {
  const ThemeColors& colors = m_theme.colors();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(QPen(isSelected() ? colors.accent : colors.canvas, isSelected() ? 3.0 : 1.5));
  painter->setBrush(m_color);
  painter->drawEllipse(QPointF(), kDotPx, kDotPx);
}

QVariant RerouteItem::itemChange(GraphicsItemChange change, const QVariant& value) {
  if (change == ItemPositionHasChanged) m_moved();
  return QGraphicsItem::itemChange(change, value);
}

}  // namespace fuseline::ui
