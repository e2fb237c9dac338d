// BorderItem: a dashed divider across a wire that leads from one fuser to another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/fusions/fuser_borders.h"
#include "ui/theme/theme.h"

#include <QGraphicsItem>

namespace fuseline::ui {

class BorderItem : public QGraphicsItem {
 public:
  enum { Type = UserType + 8 };
  BorderItem(FuserBorder border, const Theme& theme);

  int type() const override { return Type; }
  const FuserBorder& border() const { return m_border; }
  /// "fuser 1" and "fuser 2": left and right of the line.
  QString textBefore() const;
  QString textBehind() const;
  QRectF boundingRect() const override;
  QPainterPath shape() const override;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

 private:
  FuserBorder m_border;
  const Theme& m_theme;
};

}  // namespace fuseline::ui
