// DropGesture: what is dropped on the canvas: entries of the palette, and ops that are dragged onto a wire.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/chain_edits.h"
#include "ui/canvas/canvas_parts.h"
#include "ui/session/edits.h"

#include <QObject>

#include <optional>
#include <set>
#include <string>

namespace fuseline::ui {

class DropGesture : public QObject {
  Q_OBJECT

 public:
  explicit DropGesture(const CanvasParts& parts);

  /// Puts a palette entry at a place; onto a wire, it goes into the wire, and its neighbors make room. Right beside the
  /// selected node, it is connected to it.
  void drop(const std::string& entry, QPointF position);
  /// Shows the wire that a drop at this place would go into, or the port it would be connected to; nullopt ends it.
  void preview(const std::string& entry, std::optional<QPointF> position);

  /// Edit that dropping the moved ops here would make; with Alt they only move.
  std::optional<Edit> spliceAt(QPointF position, Qt::KeyboardModifiers modifiers) const;
  void previewSplice(QPointF position, Qt::KeyboardModifiers modifiers);
  void endPreview();
  /// Wires may be about to be made anew.
  void forgetTarget();

 Q_SIGNALS:
  /// A sentence for the status line; empty clears it.
  void hint(const QString& sentence);

 private:
  void setTarget(LinkItem* target);
  static std::optional<double> distanceBeside(const NodeItem& node, QPointF position);
  std::string anchorOf(const std::string& entry, QPointF position) const;
  void setAnchor(const std::string& anchor);
  std::set<std::string> draggedOps() const;
  LinkItem* linkUnder(QPointF position, const std::set<std::string>& chain) const;
  bool isFree(const Position& place, const std::set<std::string>& except) const;
  Room roomIn(const Link& link, const Places& places) const;

  CanvasParts m_parts;
  LinkItem* m_target = nullptr;
  std::string m_anchor;  // id of the node that a drop would be connected to
};

}  // namespace fuseline::ui
