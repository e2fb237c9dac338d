// Paints discs with signs.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/change_badge.h"

#include "ui/canvas/metrics.h"
#include "ui/changes/changes_model.h"

namespace fuseline::ui {

namespace {

constexpr double kBadgeRadiusPx = 9.5;
constexpr double kSmallRadiusPx = 6.5;

void paintDisc(QPainter& painter, QPointF centre, double radius, DocumentChange::Kind kind, const Theme& theme) {
  const QColor ground = changeColor(theme.colors(), kind);
  painter.setPen(QPen(theme.colors().canvas, 1.5));
  painter.setBrush(ground);
  painter.drawEllipse(centre, radius, radius);
  QFont font = scaledFont(1.0, QFont::Bold);
  font.setPixelSize(static_cast<int>(radius * 1.6));
  painter.setFont(font);
  painter.setPen(textOn(ground));
  painter.drawText(QRectF(centre.x() - radius, centre.y() - radius, 2 * radius, 2 * radius), Qt::AlignCenter,
                   changeSign(kind));
}

}  // namespace

void paintChangeBadge(QPainter& painter, const QRectF& box, DocumentChange::Kind kind, const Theme& theme, bool isFar) {
  paintDisc(painter, box.topLeft() + QPointF(2, 0), isFar ? kBadgeRadiusPx * 1.5 : kBadgeRadiusPx, kind, theme);
}

void paintSmallChangeBadge(QPainter& painter, QPointF centre, DocumentChange::Kind kind, const Theme& theme) {
  paintDisc(painter, centre, kSmallRadiusPx, kind, theme);
}

}  // namespace fuseline::ui
