// CanvasSelection: keeps the selected items and the selection of the document alike, and walks along it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_parts.h"
#include "ui/session/edits.h"

#include <QObject>

#include <string>

namespace fuseline::ui {

class CanvasSelection : public QObject {
  Q_OBJECT

 public:
  explicit CanvasSelection(const CanvasParts& parts);

  /// Selects the items of what is selected.
  void show();
  /// Items were selected, or are no more: the document's selection follows.
  void take();

  /// Selects the nearest node in a direction, or any when there is no selection.
  void selectNeighbour(QPointF direction);
  /// Selects the op at the other end of a wire out of the selected node, or into it; of several the one that lies
  /// nearest to its row.
  void followWire(bool isDownstream);
  /// Selects the op, too, and all that it reads from, or with Downstream all that reads from it.
  void selectReachable(const std::string& id, FlowDirection direction);
  /// Selects all nodes upstream or downstream of each selected node.
  void selectReachable(FlowDirection direction);

  /// Is there a node, a hull's label or a frame's handle?
  bool isOver(QPointF position) const;
  /// By the label of a hull. False: there is none here.
  bool chooseHullAt(QPointF position);
  /// A menu is about what is under the pointer, or about the selection if that is a part of it.
  void selectForMenu(QPointF position);
  /// Shift adds the node to the selection; with Alt all before it, and Ctrl and Alt add all behind it. False: the press
  /// is the node's own.
  bool addByPress(const std::string& id, Qt::KeyboardModifiers modifiers);

 Q_SIGNALS:
  /// A sentence for the status line.
  void hint(const QString& sentence);

 private:
  CanvasParts m_parts;
  bool m_isShowing = false;
  bool m_isTaking = false;
};

}  // namespace fuseline::ui
