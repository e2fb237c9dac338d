// HullItem: the outline around the ops of one fused entry of the forward or backward plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/hull_look.h"
#include "ui/theme/theme.h"

#include <QGraphicsItem>
#include <QPainterPath>
#include <QPen>

#include <vector>

namespace fuseline::ui {

class HullItem : public QGraphicsItem {
 public:
  enum { Type = UserType + 3 };
  HullItem(HullLook look, const Theme& theme);

  int type() const override { return Type; }
  const HullLook& look() const { return m_look; }
  /// The one that keys and menus are about.
  void setChosen(bool isChosen);
  /// boxes: the hull's nodes. others: nodes that it should not seem to contain. Does nothing where they are the same.
  void setBoxes(const std::vector<QRectF>& boxes, const std::vector<QRectF>& others);
  /// Where the whole label would be, and how far right it may go: up to what stands there, beside the hull or over it.
  QRectF wholeLabelArea() const;
  /// The same of the longer one: from near, or from far.
  QRectF widestLabelArea() const;
  void setLabelEnd(double right);
  QRectF outlineRect() const { return m_outline.boundingRect(); }
  QRectF boundingRect() const override { return m_bounds; }
  QPainterPath shape() const override;
  /// Where the label stands: clicking it selects the ops.
  QRectF labelArea() const { return m_near.area; }
  /// The label below kFarZoom: in a larger font.
  QString farLabel() const { return m_far.text; }
  QRectF farLabelArea() const { return m_far.area; }
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

 private:
  struct Label {
    QString text;
    QRectF area;
  };

  QColor color() const;
  QPen outlinePen() const;
  void paintGround(QPainter& painter) const;
  void paintOverview(QPainter& painter) const;
  void paintLabel(QPainter& painter, bool isFar) const;
  double labelRoom() const;
  QRectF labelAreaOf(double textWidth, double factor = 1.0) const;
  void measureLabel();
  HullLook m_look;
  const Theme& m_theme;
  const double m_labelWidth;  // of the whole label
  const double m_farWidth;
  bool m_isChosen = false;
  std::vector<QRectF> m_boxes;   // that the outline was made for
  std::vector<QRectF> m_others;  // the same
  QPainterPath m_outline;
  double m_labelEnd = 0.0;  // left of the hull's middle it is of no effect
  // Measured when a box or the label's end changes: every paint of the scene asks for the bounds of all hulls.
  Label m_near;
  Label m_far;
  QRectF m_bounds;
};

}  // namespace fuseline::ui
