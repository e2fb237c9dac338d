// Draws what is gone: a dashed outline without a ground, and its name.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/ghost_item.h"

#include "ui/canvas/change_badge.h"
#include "ui/canvas/metrics.h"
#include "ui/theme/format.h"

#include <QGraphicsSceneMouseEvent>
#include <QPainter>
#include <QStyleOptionGraphicsItem>

#include <utility>

namespace fuseline::ui {

GhostItem::GhostItem(NodeLook look, const Theme& theme, int change, DocumentChange::Kind kind)
    : NodeItem(std::move(look), theme), m_theme(theme), m_change(change), m_kind(kind) {
  setFlags({});
  setAcceptedMouseButtons(Qt::LeftButton);
  setZValue(8);
  const char* tip = kind == DocumentChange::Kind::Removed ? "%1 %2 was removed; it is only in the other pipeline."
                                                          : "%1 %2 was added; it is only in the new pipeline.";
  setToolTip(
      QCoreApplication::translate("GhostItem", tip).arg(this->look().title, toQt(this->look().id)).toHtmlEscaped());
}

void GhostItem::setCurrent(bool isCurrent) {
  if (isCurrent == m_isCurrent) return;
  m_isCurrent = isCurrent;
  update();
}

void GhostItem::mousePressEvent(QGraphicsSceneMouseEvent* event) {
  event->accept();
  if (m_clicked) m_clicked();
}

void GhostItem::paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget*) {
  const bool isFar = option->levelOfDetailFromTransform(painter->worldTransform()) < kFarZoom;
  const ThemeColors& colors = m_theme.colors();
  const QRectF box = mapRectFromScene(sceneBox());
  const double radius = look().kind == NodeKind::Op ? kNodeCornerPx : box.height() / 2;
  QPen pen(m_isCurrent ? colors.accent : colors.dimText, m_isCurrent ? 2.4 : 1.4, Qt::DashLine);
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(pen);
  painter->setBrush(Qt::NoBrush);
  painter->drawRoundedRect(box, radius, radius);
  paintTexts(*painter, box, isFar);
  paintChangeBadge(*painter, box, m_kind, m_theme, isFar);
}

void GhostItem::paintTexts(QPainter& painter, const QRectF& box, bool isFar) const {
  const QRectF area = box.adjusted(10, 2, -8, -2);
  painter.setPen(m_theme.colors().dimText);
  QFont title = scaledFont(isFar ? kFarFontFactor : 1.0, QFont::DemiBold);
  title.setStrikeOut(m_kind == DocumentChange::Kind::Removed);
  painter.setFont(title);
  if (isFar)
    return drawFarTitle(painter, area, look().kind == NodeKind::Op ? breakableTitle(look().title) : look().title);
  const auto drawLine = [&](const QFont& font, const QString& text, double top, double bottom) {
    painter.setFont(font);
    const QRectF line(area.left(), box.top() + top, area.width(), bottom - top);
    painter.drawText(line, static_cast<int>(Qt::AlignLeft | Qt::AlignVCenter),
                     QFontMetricsF(font).elidedText(text, Qt::ElideRight, line.width()));
  };
  const double height = look().kind == NodeKind::Op ? kNodeHeightPx : kEndHeightPx;
  drawLine(title, look().title, height * 0.08, height * 0.56);
  drawLine(scaledFont(1.0), look().subtitle, height * 0.5, height * 0.92);
}

}  // namespace fuseline::ui
