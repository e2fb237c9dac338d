// Draws fusion hulls below the nodes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/hull_item.h"

#include "ui/canvas/metrics.h"

#include <QFontMetricsF>
#include <QPainter>
#include <QStyleOptionGraphicsItem>

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kHullCornerPx = 12.0;
constexpr double kHullLabelHeightPx = 22.0;
constexpr double kLabelPaddingPx = 8.0;
constexpr int kOverviewAlpha = 50;

/// Backward hulls are a little larger, so that both outlines of the same ops stay visible.
double marginOf(HullKind kind) { return kind == HullKind::Forward ? 13.0 : kind == HullKind::Backward ? 20.0 : 17.0; }

QFont hullLabelFont(double factor = 1.0) { return scaledFont(factor, QFont::DemiBold); }

double hullLabelWidth(const QString& label, double factor = 1.0) {
  return std::ceil(QFontMetricsF(hullLabelFont(factor)).horizontalAdvance(label));
}

QPainterPath roundedHull(const QRectF& rect) {
  QPainterPath path;
  path.addRoundedRect(rect, kHullCornerPx, kHullCornerPx);
  return path;
}

/// Uniting outlines takes time that grows with the square of their number.
constexpr std::size_t kMostJoined = 64;

bool standInARow(const QRectF& a, const QRectF& b) {
  return std::abs(a.center().y() - b.center().y()) < std::min(a.height(), b.height()) / 2;
}

bool isCrowded(const QRectF& area, const std::vector<QRectF>& others) {
  return std::ranges::any_of(others, [&](const QRectF& other) { return area.intersects(other); });
}

/// Neighbors in a row with nothing else between them are one.
std::vector<QRectF> runsOf(const std::vector<QRectF>& boxes, const std::vector<QRectF>& others) {
  std::vector<QRectF> runs;
  for (const QRectF& box : boxes) {
    const bool goesOn = !runs.empty() && standInARow(runs.back(), box) && !isCrowded(runs.back().united(box), others);
    if (goesOn)
      runs.back() = runs.back().united(box);
    else
      runs.push_back(box);
  }
  return runs;
}

QPainterPath apart(const std::vector<QRectF>& runs, double marginPx) {
  QPainterPath outline;
  for (const QRectF& run : runs) outline.addPath(roundedHull(run.adjusted(-marginPx, -marginPx, marginPx, marginPx)));
  return outline;
}

/// One by one, joined by bands; but not to the start of another row, all across what stands between.
QPainterPath joined(const std::vector<QRectF>& runs, double marginPx) {
  if (runs.size() > kMostJoined) return apart(runs, marginPx);
  QPainterPath outline;
  QPainterPath spine;
  for (const QRectF& run : runs) {
    outline = outline.united(roundedHull(run.adjusted(-marginPx, -marginPx, marginPx, marginPx)));
    const bool isNewRow = !spine.isEmpty() && run.left() < spine.currentPosition().x() - kNodeWidthPx;
    spine.isEmpty() || isNewRow ? spine.moveTo(run.center()) : spine.lineTo(run.center());
  }
  QPainterPathStroker band;
  band.setWidth(2 * marginPx);
  return outline.united(band.createStroke(spine)).simplified();
}

}  // namespace

HullItem::HullItem(HullLook look, const Theme& theme)
    : m_look(std::move(look)),
      m_theme(theme),
      m_labelWidth(hullLabelWidth(m_look.label)),
      m_farWidth(hullLabelWidth(m_look.farLabel, kFarFontFactor)) {
  setZValue(m_look.kind == HullKind::Backward ? 1 : 2);
}

void HullItem::setBoxes(const std::vector<QRectF>& boxes, const std::vector<QRectF>& others) {
  if (!boxes.empty() && boxes == m_boxes && others == m_others) return;
  prepareGeometryChange();
  m_boxes = boxes;
  m_others = others;
  const double margin = marginOf(m_look.kind);
  QRectF around;
  for (const QRectF& box : boxes) around = around.united(box);
  m_outline = isCrowded(around, others) ? joined(runsOf(boxes, others), margin)
                                        : roundedHull(around.adjusted(-margin, -margin, margin, margin));
  measureLabel();
  update();
}

void HullItem::measureLabel() {
  const double room = labelRoom();
  const QString near = m_labelWidth <= room
                           ? m_look.label
                           : QFontMetricsF(hullLabelFont()).elidedText(m_look.label, Qt::ElideRight, room);
  m_near = {near, labelAreaOf(near == m_look.label ? m_labelWidth : hullLabelWidth(near))};
  const QString far =
      m_farWidth <= room
          ? m_look.farLabel
          : QFontMetricsF(hullLabelFont(kFarFontFactor)).elidedText(m_look.farLabel, Qt::ElideRight, room);
  m_far = {far, labelAreaOf(hullLabelWidth(far, kFarFontFactor), kFarFontFactor)};
  m_bounds = m_outline.boundingRect().united(m_near.area).united(m_far.area).adjusted(-2, -2, 2, 2);
}

/// As wide as a label may be without covering what is beside it; the tip has all of it.
double HullItem::labelRoom() const {
  const QRectF bounds = m_outline.boundingRect();
  const double end = m_labelEnd > bounds.center().x() ? m_labelEnd : bounds.right();
  return end - bounds.left() - kHullCornerPx - 2 * kLabelPaddingPx;
}

void HullItem::setLabelEnd(double right) {
  if (right == m_labelEnd) return;
  prepareGeometryChange();
  m_labelEnd = right;
  measureLabel();
}

QRectF HullItem::wholeLabelArea() const { return labelAreaOf(m_labelWidth); }

QRectF HullItem::widestLabelArea() const { return labelAreaOf(std::max(m_labelWidth, m_farWidth)); }

QRectF HullItem::labelAreaOf(double textWidth, double factor) const {
  const QRectF bounds = m_outline.boundingRect();
  const double height = factor * kHullLabelHeightPx;
  const double top = m_look.kind == HullKind::Backward ? bounds.bottom() - 4 : bounds.top() - height + 4;
  return {bounds.left() + kHullCornerPx, top, textWidth + 2 * kLabelPaddingPx, height};
}

QPainterPath HullItem::shape() const {
  QPainterPath path;
  path.addRect(labelArea());
  return path;
}

QColor HullItem::color() const {
  const ThemeColors& colors = m_theme.colors();
  if (m_look.isOff) return colors.dimText;
  switch (m_look.kind) {
    case HullKind::Forward: return colors.forward;
    case HullKind::Backward: return colors.backward;
    case HullKind::Joint: return colors.joint;
  }
  return colors.forward;
}

void HullItem::setChosen(bool isChosen) {
  if (isChosen == m_isChosen) return;
  m_isChosen = isChosen;
  update();
}

QPen HullItem::outlinePen() const {
  QPen pen(color(), m_isChosen ? 3.2 : 1.6);
  pen.setStyle(m_look.isOff                        ? Qt::DotLine
               : m_look.kind == HullKind::Forward  ? Qt::SolidLine
               : m_look.kind == HullKind::Backward ? Qt::DashLine
                                                   : Qt::DashDotLine);
  return pen;
}

void HullItem::paintGround(QPainter& painter) const {
  if (m_look.isOff) return;
  QColor fill = color();
  fill.setAlpha(m_look.kind == HullKind::Forward ? 30 : 42);
  const Qt::BrushStyle pattern = m_look.kind == HullKind::Forward    ? Qt::SolidPattern
                                 : m_look.kind == HullKind::Backward ? Qt::BDiagPattern
                                                                     : Qt::DiagCrossPattern;
  painter.fillPath(m_outline, QBrush(fill, pattern));
}

void HullItem::paintLabel(QPainter& painter, bool isFar) const {
  const Label& label = isFar ? m_far : m_near;
  const QColor onColor = m_theme.isDark() ? m_theme.colors().canvas : QColor(Qt::white);
  painter.setPen(m_look.isOff ? QPen(color(), 1.0, Qt::DotLine) : QPen(Qt::NoPen));
  painter.setBrush(m_look.isOff ? m_theme.colors().canvas : color());
  painter.drawRoundedRect(label.area, 5, 5);
  painter.setFont(hullLabelFont(isFar ? kFarFontFactor : 1.0));
  painter.setPen(m_look.isOff ? color() : onColor);
  painter.drawText(label.area, Qt::AlignCenter, label.text);
}

/// Hatching and labels would be noise, and take most of the time.
void HullItem::paintOverview(QPainter& painter) const {
  painter.setRenderHint(QPainter::Antialiasing, false);
  QColor fill = color();
  fill.setAlpha(kOverviewAlpha);
  if (!m_look.isOff) painter.fillPath(m_outline, fill);
  QPen pen = outlinePen();
  pen.setCosmetic(true);
  pen.setWidthF(m_isChosen ? 2.0 : 1.0);
  painter.strokePath(m_outline, pen);
}

void HullItem::paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget*) {
  const double zoom = option->levelOfDetailFromTransform(painter->worldTransform());
  if (zoom < kOverviewZoom) return paintOverview(*painter);
  painter->setRenderHint(QPainter::Antialiasing);
  paintGround(*painter);
  painter->strokePath(m_outline, outlinePen());
  paintLabel(*painter, zoom < kFarZoom);
}

}  // namespace fuseline::ui
