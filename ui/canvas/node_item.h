// NodeItem: one op, input or output on the canvas, with its ports.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/node_look.h"
#include "ui/theme/theme.h"

#include <QGraphicsItem>

#include <optional>

namespace fuseline::ui {

/// A port of a node on the canvas.
struct PortRef {
  std::string node;
  std::string port;
  bool isOutput = false;
  bool operator==(const PortRef&) const = default;
  Endpoint endpoint() const { return {node, port}; }
};

/// How a port looks while a wire is being drawn.
enum class PortMark { Plain, Legal, Illegal, Target };

/// The ground of a title of an op.
QColor headColor(const Theme& theme, std::string_view category);

/// A title that may be broken between its words: "MakeExtra" "Output".
QString breakableTitle(QString title);
/// Large, with the painter's font or a smaller one: on several lines where the title can be broken, with an ellipsis
/// where a part of it is wider than the area.
void drawFarTitle(QPainter& painter, const QRectF& area, const QString& title);

class NodeItem : public QGraphicsItem {
 public:
  enum { Type = UserType + 1 };
  NodeItem(NodeLook look, const Theme& theme);

  int type() const override { return Type; }
  QRectF boundingRect() const override;
  /// The box itself, without ports, in scene coordinates.
  QRectF sceneBox() const { return box().translated(scenePos()); }
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

  const NodeLook& look() const { return m_look; }
  /// Whether it looks different now.
  bool setLook(NodeLook look);
  /// In scene coordinates; nullopt when the node has no such port.
  std::optional<QPointF> portPosition(const PortRef& port) const;
  std::optional<PortRef> portNear(QPointF scenePosition) const;
  std::vector<PortRef> ports() const;
  QString tipAt(QPointF scenePosition) const;
  /// Whether this is on the arrow that opens a block in place.
  bool isOnArrow(QPointF scenePosition) const;
  /// The op within an open block that is here; nullptr: there is none.
  const NodeItem* innerAt(QPointF scenePosition) const;
  /// Whether this is on the badge of its problems.
  bool isOnBadge(QPointF scenePosition) const;

  void setMark(const PortRef& port, PortMark mark);
  void clearMarks();

 protected:
  QVariant itemChange(GraphicsItemChange change, const QVariant& value) override;

 private:
  QRectF box() const;
  QRectF textArea() const;
  QRectF badgeArea() const;
  QRectF arrowArea() const;
  void showInside();
  QPointF portPosition(bool isOutput, std::size_t index) const;
  PortMark markOf(const PortRef& port) const;
  void paintBox(QPainter& painter) const;
  void paintBypass(QPainter& painter) const;
  QFont titleFont(double factor) const;
  const QColor& titleColor() const;
  void paintTexts(QPainter& painter) const;
  void paintFarTitle(QPainter& painter) const;
  void paintHeat(QPainter& painter, bool isFar) const;
  void paintPorts(QPainter& painter) const;
  void paintPort(QPainter& painter, const PortLook& port, bool isOutput, std::size_t index) const;
  void paintBadge(QPainter& painter) const;
  void paintError(QPainter& painter, bool isFar) const;
  void paintOverview(QPainter& painter) const;
  void paintStatus(QPainter& painter) const;
  void paintArrow(QPainter& painter) const;
  void paintInsideGround(QPainter& painter) const;

  NodeLook m_look;
  const Theme& m_theme;
  std::vector<std::pair<PortRef, PortMark>> m_marks;
};

}  // namespace fuseline::ui
