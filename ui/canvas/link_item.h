// LinkItem: a wire between two ports, with the shape and dtype of its tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor_spec.h"
#include "ui/session/edits.h"
#include "ui/theme/theme.h"

#include <QGraphicsPathItem>

#include <optional>

namespace fuseline::ui {

/// A smooth line that leaves `from` to the right and enters `to` from the left.
QPainterPath wirePath(QPointF from, QPointF to);

class LinkItem : public QGraphicsPathItem {
 public:
  enum { Type = UserType + 2 };
  LinkItem(Link link, const Theme& theme);

  int type() const override { return Type; }
  const Link& link() const { return m_link; }
  void setEnds(QPointF from, QPointF to);
  void setSpec(const std::optional<TensorSpec>& spec);
  const std::optional<TensorSpec>& spec() const { return m_spec; }
  /// What a recipe makes of the tensor before it is multiplied; empty: nothing. tip: the same in sentences.
  void setQuantizer(const QString& chip, const QString& tip);
  /// Drop here and the new op goes into this wire.
  void setDropTarget(bool isTarget);
  bool isDropTarget() const { return m_isDropTarget; }
  /// Is about to be cut.
  void setCut(bool isCut);
  bool isCut() const { return m_isCut; }
  QRectF boundingRect() const override;
  QPainterPath shape() const override;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

 private:
  void paintGlow(QPainter& painter) const;
  QPen pen() const;
  void paintLabel(QPainter& painter) const;
  void paintChip(QPainter& painter) const;
  QColor color() const;
  Link m_link;
  const Theme& m_theme;
  std::optional<TensorSpec> m_spec;
  QString m_chip;
  bool m_isDropTarget = false;
  bool m_isCut = false;
};

}  // namespace fuseline::ui
