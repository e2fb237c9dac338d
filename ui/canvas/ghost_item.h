// GhostItem: an op, an input or an output that only the other pipeline of a comparison has, where it would stand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compare/document_difference.h"
#include "ui/canvas/node_item.h"

#include <functional>

namespace fuseline::ui {

/// Has the ports of a node, for the wires that are gone as well, but cannot be selected, moved or wired.
class GhostItem : public NodeItem {
 public:
  enum { Type = UserType + 4 };
  /// kind: Removed, or Added in a picture of the base.
  GhostItem(NodeLook look, const Theme& theme, int change, DocumentChange::Kind kind);

  int type() const override { return Type; }
  /// Which change of the comparison says that it is gone.
  int change() const { return m_change; }
  /// The one that the list of changes is at.
  void setCurrent(bool isCurrent);
  void setClicked(std::function<void()> clicked) { m_clicked = std::move(clicked); }
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

 protected:
  void mousePressEvent(QGraphicsSceneMouseEvent* event) override;

 private:
  void paintTexts(QPainter& painter, const QRectF& box, bool isFar) const;

  const Theme& m_theme;
  int m_change;
  DocumentChange::Kind m_kind;
  bool m_isCurrent = false;
  std::function<void()> m_clicked;
};

}  // namespace fuseline::ui
