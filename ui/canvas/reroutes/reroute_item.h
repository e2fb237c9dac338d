// RerouteItem: a dot that a wire passes through.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QColor>
#include <QGraphicsItem>
#include <QPainterPath>
#include <QPointF>

#include <functional>
#include <string>
#include <vector>

namespace fuseline::ui {

/// A smooth line through these points, two at least; it leaves the first and enters the last one to the right.
QPainterPath pathThrough(const std::vector<QPointF>& points);

class RerouteItem : public QGraphicsItem {
 public:
  enum { Type = UserType + 9 };
  /// id: see Reroute. moved: called as the item moves.
  RerouteItem(std::string id, const Theme& theme, std::function<void()> moved);

  int type() const override { return Type; }
  const std::string& id() const { return m_id; }
  /// Wire and dot have the same color.
  void setColor(const QColor& color);
  QRectF boundingRect() const override;
  QPainterPath shape() const override;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

 protected:
  QVariant itemChange(GraphicsItemChange change, const QVariant& value) override;

 private:
  std::string m_id;
  const Theme& m_theme;
  std::function<void()> m_moved;
  QColor m_color;
};

}  // namespace fuseline::ui
