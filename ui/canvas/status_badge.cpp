// Paints discs with signs that are drawn, not written: they look the same in every font.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/status_badge.h"

#include <QPainterPath>

namespace fuseline::ui {

namespace {

constexpr double kRadiusPx = 7.0;
constexpr double kDotRadiusPx = 3.5;  // of an op that was not run: there is nothing to say of it yet

QColor colorOf(NodeStatus status, const ThemeColors& colors) {
  switch (status) {
    case NodeStatus::NeverRun: return colors.dimText;
    case NodeStatus::Running: return colors.accent;
    case NodeStatus::Measured: return colors.good;
    case NodeStatus::Stale:
    case NodeStatus::Stopped: return colors.warning;
    case NodeStatus::Failed: return colors.error;
  }
  return colors.dimText;
}

/// In a square from -1 to 1.
QPainterPath signOf(NodeStatus status) {
  QPainterPath sign;
  switch (status) {
    case NodeStatus::NeverRun: break;
    case NodeStatus::Running:
      sign.addPolygon(QList<QPointF>{{-0.3, -0.5}, {0.55, 0}, {-0.3, 0.5}, {-0.3, -0.5}});
      break;
    case NodeStatus::Measured: sign.addPolygon(QList<QPointF>{{-0.5, 0.05}, {-0.12, 0.42}, {0.5, -0.38}}); break;
    case NodeStatus::Stale:
      sign.moveTo(-0.55, 0.12);
      sign.cubicTo(-0.3, -0.6, 0.3, 0.6, 0.55, -0.12);
      break;
    case NodeStatus::Stopped: sign.addRect(-0.35, -0.35, 0.7, 0.7); break;
    case NodeStatus::Failed:
      sign.addPolygon(QList<QPointF>{{-0.4, -0.4}, {0.4, 0.4}});
      sign.addPolygon(QList<QPointF>{{-0.4, 0.4}, {0.4, -0.4}});
      break;
  }
  return sign;
}

}  // namespace

void paintStatusBadge(QPainter& painter, QPointF centre, NodeStatus status, const Theme& theme) {
  const QColor color = colorOf(status, theme.colors());
  const double radius = status == NodeStatus::NeverRun ? kDotRadiusPx : kRadiusPx;
  painter.setPen(QPen(theme.colors().canvas, 1.4));
  painter.setBrush(color);
  painter.drawEllipse(centre, radius, radius);
  painter.setBrush(Qt::NoBrush);
  const QTransform place = QTransform::fromTranslate(centre.x(), centre.y()).scale(kRadiusPx, kRadiusPx);
  painter.strokePath(place.map(signOf(status)), QPen(textOn(color), 1.7, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
}

}  // namespace fuseline::ui
