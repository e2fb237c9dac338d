// FrameItem: a frame or a note on the canvas, behind the nodes. It is taken by its header and its edges, a note
// anywhere; what lies in a frame is taken as if there were none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/edit.h"
#include "ui/theme/theme.h"

#include <QGraphicsItem>
#include <QPainterPath>

namespace fuseline::ui {

class FrameItem : public QGraphicsItem {
 public:
  enum { Type = UserType + 6 };
  /// frame: has an area.
  FrameItem(const DocumentFrame& frame, const Theme& theme);

  int type() const override { return Type; }
  /// As the document has it.
  const DocumentFrame& frame() const { return m_frame; }
  void setFrame(const DocumentFrame& frame);
  /// But for its area: it is under way.
  void setFrameInHand(const DocumentFrame& frame);
  /// As it stands now: it may be under way.
  FrameArea area() const;
  QRectF sceneBox() const { return mapRectToScene(box()); }
  /// Where its title or text is written, in scene coordinates.
  QRectF textArea() const { return mapRectToScene(isNote() ? box() : header()); }
  /// Is this its header, an edge of it, or a note? Also where it is locked.
  bool isHandle(QPointF scenePosition) const { return handle().contains(mapFromScene(scenePosition)); }

  QRectF boundingRect() const override;
  QPainterPath shape() const override;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

 protected:
  QVariant itemChange(GraphicsItemChange change, const QVariant& value) override;
  void mousePressEvent(QGraphicsSceneMouseEvent* event) override;
  void mouseMoveEvent(QGraphicsSceneMouseEvent* event) override;
  void mouseReleaseEvent(QGraphicsSceneMouseEvent* event) override;
  void hoverMoveEvent(QGraphicsSceneHoverEvent* event) override;

 private:
  bool isNote() const { return m_frame.isNote(); }
  QRectF box() const { return {QPointF(), m_size}; }
  QRectF header() const;
  QPainterPath handle() const;
  Qt::Edges edgesAt(QPointF position) const;
  void place(const QRectF& sceneBox);
  void paintFrame(QPainter& painter, bool isFar) const;
  void paintNote(QPainter& painter) const;
  QRectF beside(const QRectF& area) const;
  void paintLock(QPainter& painter) const;
  QPen edgePen() const;

  DocumentFrame m_frame;
  const Theme& m_theme;
  QSizeF m_size;
  bool m_isPlacing = false;
  Qt::Edges m_grip;     // what is pulled at; none: the frame is moved
  QRectF m_pressedBox;  // as it was then
  QPointF m_pressedAt;
};

}  // namespace fuseline::ui
