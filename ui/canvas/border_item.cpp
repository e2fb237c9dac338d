// Draws dividers between fusers: their line stands in the gap between two nodes, their text above hulls and labels.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/border_item.h"

#include "ui/canvas/metrics.h"

#include <QCoreApplication>
#include <QPainter>
#include <QStyleOptionGraphicsItem>

namespace fuseline::ui {

namespace {

constexpr double kTopPx = -(kNodeHeightPx / 2.0 + 58);
constexpr double kBottomPx = kNodeHeightPx / 2.0 + 30;
constexpr double kTextHeightPx = 18.0;
constexpr double kTextGapPx = 7.0;
constexpr double kTextWidthPx = 90.0;
constexpr double kHoverPx = 6.0;

QString fuserText(int number) { return QCoreApplication::translate("BorderItem", "fuser %1").arg(number); }

}  // namespace

BorderItem::BorderItem(FuserBorder border, const Theme& theme) : m_border(std::move(border)), m_theme(theme) {
  setZValue(4);  // below wires and what they say
  setToolTip(m_border.tip);
}

QString BorderItem::textBefore() const { return fuserText(m_border.fuserBefore); }

QString BorderItem::textBehind() const { return fuserText(m_border.fuserBehind); }

QRectF BorderItem::boundingRect() const { return {-kTextWidthPx, kTopPx, 2 * kTextWidthPx, kBottomPx - kTopPx}; }

QPainterPath BorderItem::shape() const {
  QPainterPath path;
  path.addRect(-kHoverPx, kTopPx, 2 * kHoverPx, kBottomPx - kTopPx);
  return path;
}

/// From far away the line alone remains, stronger.
void BorderItem::paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget*) {
  const bool isFar = option->levelOfDetailFromTransform(painter->worldTransform()) < kFarZoom;
  painter->setPen(QPen(m_theme.colors().dimText, isFar ? 2.6 : 1.4, Qt::DashLine));
  painter->drawLine(QPointF(0, kTopPx), QPointF(0, kBottomPx));
  if (isFar) return;
  painter->setFont(scaledFont(0.88, QFont::DemiBold));
  const auto drawText = [&](double left, Qt::Alignment alignment, const QString& text) {
    painter->drawText(QRectF(left, kTopPx, kTextWidthPx - kTextGapPx, kTextHeightPx),
                      static_cast<int>(alignment | Qt::AlignVCenter), text);
  };
  drawText(-kTextWidthPx, Qt::AlignRight, textBefore());
  drawText(kTextGapPx, Qt::AlignLeft, textBehind());
}

}  // namespace fuseline::ui
