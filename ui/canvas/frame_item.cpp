// Draws a frame, and resizes it under the mouse.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/frame_item.h"

#include "ui/canvas/frame_geometry.h"
#include "ui/canvas/frame_palette.h"
#include "ui/canvas/graph_scene.h"
#include "ui/canvas/metrics.h"
#include "ui/theme/format.h"

#include <QFontMetricsF>
#include <QGraphicsSceneHoverEvent>
#include <QGraphicsSceneMouseEvent>
#include <QGraphicsView>
#include <QPainter>
#include <QScopedValueRollback>
#include <QStyleOptionGraphicsItem>
#include <QTextLayout>

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kFrameCornerPx = 8.0;
constexpr double kTextMarginPx = 12.0;
constexpr double kLockWidthPx = 11.0;
constexpr double kLockHeightPx = 14.0;
/// To both sides of an edge.
constexpr double kGripPx = 5.0;
/// Limit for a text from a file, which may be very long.
constexpr qsizetype kMostShownChars = 4000;

QPainterPath roundedFrame(const QRectF& box) {
  QPainterPath path;
  path.addRoundedRect(box, kFrameCornerPx, kFrameCornerPx);
  return path;
}

/// The lines of a text at this width, as many as there is room for; the last one says where there are more. Nothing is
/// clipped, which an SVG cannot.
QStringList fittedLines(const QString& text, const QFont& font, double widthPx, qsizetype numLines) {
  QStringList lines;
  for (const QString& paragraph : text.split(u'\n')) {
    QTextLayout layout(paragraph, font);
    layout.setTextOption(QTextOption(Qt::AlignLeft));
    layout.beginLayout();
    for (QTextLine line = layout.createLine(); line.isValid() && lines.size() <= numLines; line = layout.createLine()) {
      line.setLineWidth(widthPx);
      lines.append(paragraph.mid(line.textStart(), line.textLength()));
    }
    layout.endLayout();
  }
  if (lines.size() <= numLines) return lines;
  lines.resize(numLines);
  if (!lines.isEmpty()) lines.last() += QStringLiteral("…");
  return lines;
}

Qt::CursorShape cursorFor(Qt::Edges edges) {
  if (edges == (Qt::TopEdge | Qt::LeftEdge) || edges == (Qt::BottomEdge | Qt::RightEdge)) return Qt::SizeFDiagCursor;
  if (edges == (Qt::TopEdge | Qt::RightEdge) || edges == (Qt::BottomEdge | Qt::LeftEdge)) return Qt::SizeBDiagCursor;
  if (edges & (Qt::LeftEdge | Qt::RightEdge)) return Qt::SizeHorCursor;
  return edges ? Qt::SizeVerCursor : Qt::SizeAllCursor;
}

}  // namespace

FrameItem::FrameItem(const DocumentFrame& frame, const Theme& theme) : m_theme(theme) { setFrame(frame); }

void FrameItem::setFrame(const DocumentFrame& frame) {
  setFrameInHand(frame);
  place(boxOf(*frame.area));
}

void FrameItem::setFrameInHand(const DocumentFrame& frame) {
  const bool isFree = !frame.isLocked();
  m_frame = frame;
  setFlags(ItemIsSelectable | ItemSendsGeometryChanges);
  setFlag(ItemIsMovable, isFree);
  setAcceptedMouseButtons(isFree ? Qt::LeftButton : Qt::NoButton);
  setAcceptHoverEvents(isFree);
  update();
}

void FrameItem::place(const QRectF& sceneBox) {
  const QScopedValueRollback guard(m_isPlacing, true);
  prepareGeometryChange();
  m_size = sceneBox.size();
  setPos(sceneBox.topLeft());
}

FrameArea FrameItem::area() const { return areaOf(sceneBox().toRect()); }

// ---------------------------------------------------------------------------------------------------------- geometry

QRectF FrameItem::header() const { return {0, 0, m_size.width(), std::min<double>(kFrameHeaderPx, m_size.height())}; }

QRectF FrameItem::boundingRect() const { return box().adjusted(-kGripPx - 1, -kGripPx - 1, kGripPx + 1, kGripPx + 1); }

QPainterPath FrameItem::handle() const {
  QPainterPath path;
  path.addRect(box().adjusted(-kGripPx, -kGripPx, kGripPx, kGripPx));
  const QRectF inside = box().adjusted(kGripPx, header().bottom(), -kGripPx, -kGripPx);
  if (!isNote() && inside.isValid()) path.addRect(inside);  // a hole: the fill rule is that of even and odd
  return path;
}

/// A rubber band takes a frame only when it goes all around it: else no op in it could be taken that way.
QPainterPath FrameItem::shape() const {
  for (const QGraphicsView* view : scene() ? scene()->views() : QList<QGraphicsView*>()) {
    const QRect band = view->rubberBandRect();
    if (band.isNull()) continue;
    const bool isAround = view->mapToScene(band).boundingRect().contains(sceneBox());
    return isAround && !m_frame.isLocked() ? handle() : QPainterPath();
  }
  return handle();
}

Qt::Edges FrameItem::edgesAt(QPointF position) const {
  Qt::Edges edges;
  if (position.x() < kGripPx) edges |= Qt::LeftEdge;
  if (position.x() > m_size.width() - kGripPx) edges |= Qt::RightEdge;
  if (position.y() < kGripPx) edges |= Qt::TopEdge;
  if (position.y() > m_size.height() - kGripPx) edges |= Qt::BottomEdge;
  return edges;
}

// ------------------------------------------------------------------------------------------------------------- mouse

QVariant FrameItem::itemChange(GraphicsItemChange change, const QVariant& value) {
  if (m_isPlacing) return QGraphicsItem::itemChange(change, value);
  if (change == ItemPositionChange) {
    const QPointF position = value.toPointF();
    return QPointF(onGrid(position.x()), onGrid(position.y()));
  }
  auto* graphScene = change == ItemPositionHasChanged ? qobject_cast<GraphScene*>(scene()) : nullptr;
  if (graphScene) graphScene->frames().frameMoved(*this);
  return QGraphicsItem::itemChange(change, value);
}

void FrameItem::mousePressEvent(QGraphicsSceneMouseEvent* event) {
  m_grip = edgesAt(event->pos());
  m_pressedAt = event->scenePos();
  m_pressedBox = sceneBox();
  QGraphicsItem::mousePressEvent(event);
}

void FrameItem::mouseMoveEvent(QGraphicsSceneMouseEvent* event) {
  if (!m_grip) return QGraphicsItem::mouseMoveEvent(event);
  const QPointF way = event->scenePos() - m_pressedAt;
  QRectF pulled = m_pressedBox;
  if (m_grip & Qt::LeftEdge)
    pulled.setLeft(std::min(onGrid(pulled.left() + way.x()), pulled.right() - kLeastFrameWidthPx));
  if (m_grip & Qt::RightEdge)
    pulled.setRight(std::max(onGrid(pulled.right() + way.x()), pulled.left() + kLeastFrameWidthPx));
  if (m_grip & Qt::TopEdge)
    pulled.setTop(std::min(onGrid(pulled.top() + way.y()), pulled.bottom() - kLeastFrameHeightPx));
  if (m_grip & Qt::BottomEdge)
    pulled.setBottom(std::max(onGrid(pulled.bottom() + way.y()), pulled.top() + kLeastFrameHeightPx));
  place(pulled);
  update();
}

void FrameItem::mouseReleaseEvent(QGraphicsSceneMouseEvent* event) {
  m_grip = {};
  QGraphicsItem::mouseReleaseEvent(event);
}

void FrameItem::hoverMoveEvent(QGraphicsSceneHoverEvent* event) { setCursor(cursorFor(edgesAt(event->pos()))); }

// ---------------------------------------------------------------------------------------------------------- painting

void FrameItem::paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget*) {
  const bool isFar = option->levelOfDetailFromTransform(painter->worldTransform()) < kFarZoom;
  painter->setRenderHint(QPainter::Antialiasing);
  isNote() ? paintNote(*painter) : paintFrame(*painter, isFar);
  if (m_frame.isLocked()) paintLock(*painter);
}

QPen FrameItem::edgePen() const {
  return isSelected() ? QPen(m_theme.colors().accent, 2.4) : QPen(frameColor(m_theme, m_frame.color), 1.4);
}

void FrameItem::paintFrame(QPainter& painter, bool isFar) const {
  painter.fillPath(roundedFrame(box()), frameGround(m_theme, m_frame.color));
  QPainterPath top;
  top.addRect(header());
  painter.fillPath(roundedFrame(box()).intersected(top), headerGround(m_theme, m_frame.color));
  painter.strokePath(roundedFrame(box()), edgePen());
  const QFont font = scaledFont(isFar ? kFarFontFactor : 1.14, QFont::DemiBold);
  const QRectF area = beside(header());
  painter.setFont(font);
  painter.setPen(m_theme.colors().text);
  painter.drawText(area, static_cast<int>(Qt::AlignLeft | Qt::AlignVCenter),
                   QFontMetricsF(font).elidedText(toQt(m_frame.title).left(kMostShownChars).simplified(),
                                                  Qt::ElideRight, area.width()));
}

/// Area for the text next to the lock.
QRectF FrameItem::beside(const QRectF& area) const {
  const double right = kTextMarginPx + (m_frame.isLocked() ? kLockWidthPx + kTextMarginPx : 0);
  return area.adjusted(kTextMarginPx, 0, -right, 0);
}

void FrameItem::paintNote(QPainter& painter) const {
  painter.fillPath(roundedFrame(box()), headerGround(m_theme, m_frame.color));
  painter.strokePath(roundedFrame(box()), edgePen());
  const QFont font = scaledFont(1.0);
  const double lineHeight = QFontMetricsF(font).lineSpacing();
  QRectF line = beside(box());
  const auto numLines = static_cast<qsizetype>(std::max(0.0, (line.height() - kTextMarginPx) / lineHeight));
  line.setHeight(lineHeight);
  line.translate(0, kTextMarginPx / 2);
  painter.setFont(font);
  painter.setPen(m_theme.colors().text);
  for (const QString& text : fittedLines(toQt(*m_frame.text).left(kMostShownChars), font, line.width(), numLines)) {
    painter.drawText(line, static_cast<int>(Qt::AlignLeft | Qt::AlignVCenter), text);
    line.translate(0, lineHeight);
  }
}

/// A padlock, at the right of the header.
void FrameItem::paintLock(QPainter& painter) const {
  const QRectF area(m_size.width() - kTextMarginPx - kLockWidthPx, (kFrameHeaderPx - kLockHeightPx) / 2, kLockWidthPx,
                    kLockHeightPx);
  const QRectF body = area.adjusted(0, kLockHeightPx * 0.45, 0, 0);
  const QRectF shackle = area.adjusted(2, 0.5, -2, 0);
  painter.setPen(QPen(m_theme.colors().text, 1.6));
  painter.setBrush(Qt::NoBrush);
  painter.drawArc(QRectF(shackle.topLeft(), QSizeF(shackle.width(), shackle.width())), 0, 180 * 16);
  const double shoulder = shackle.top() + shackle.width() / 2;
  painter.drawLine(QPointF(shackle.left(), shoulder), QPointF(shackle.left(), body.top()));
  painter.drawLine(QPointF(shackle.right(), shoulder), QPointF(shackle.right(), body.top()));
  painter.fillRect(body, m_theme.colors().text);
}

}  // namespace fuseline::ui
