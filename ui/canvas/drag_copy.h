// DragCopy: copies of ops and frames that follow the pointer until they are dropped. The originals stay.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/frame_item.h"
#include "ui/canvas/link_item.h"
#include "ui/canvas/node_item.h"

#include <QGraphicsScene>
#include <QPointer>

#include <map>
#include <vector>

namespace fuseline::ui {

class DragCopy {
 public:
  /// The copied content: the text of a fragment, and its picture.
  struct Content {
    QString fragment;
    std::map<std::string, const NodeItem*> nodes;
    std::vector<const LinkItem*> links;  // among the nodes
    std::vector<const FrameItem*> frames;
  };
  /// from: where the pointer is, in scene coordinates.
  DragCopy(QGraphicsScene& scene, const Theme& theme, const Content& content, QPointF from);
  ~DragCopy();
  DragCopy(const DragCopy&) = delete;
  DragCopy& operator=(const DragCopy&) = delete;

  /// Nothing is shown before the pointer has moved far enough for a drag.
  void moveTo(QPointF place);
  bool isDragged() const { return m_copies->isVisible(); }
  const QString& fragment() const { return m_fragment; }
  /// From what is copied to the copies, in whole steps of the grid.
  QPoint offset() const { return m_copies->pos().toPoint(); }

 private:
  void add(const NodeItem& node);
  void add(const LinkItem& link, const Content& content);
  void add(const FrameItem& frame);

  QPointer<QGraphicsScene> m_scene;  // which owns the items, and may end first
  const Theme& m_theme;
  QString m_fragment;
  QPointF m_from;
  QGraphicsRectItem* m_copies;  // around nothing: it carries the others
};

}  // namespace fuseline::ui
