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

  /// Puts a palette entry at a place; onto a wire, it goes into the wire, and its neighbors make room.
  void drop(const std::string& entry, QPointF position);
  /// Shows the wire that a drop at this place would go into; nullopt ends it.
  void preview(const std::string& entry, std::optional<QPointF> position);

  /// Edit that dropping the moved ops here would make; with Alt they only move.
  std::optional<Edit> spliceAt(QPointF position, Qt::KeyboardModifiers modifiers) const;
  void previewSplice(QPointF position, Qt::KeyboardModifiers modifiers);
  void endPreview() { setTarget(nullptr); }
  /// Wires are about to be made anew.
  void forgetTarget() { m_target = nullptr; }

 Q_SIGNALS:
  /// A sentence for the status line; empty clears it.
  void hint(const QString& sentence);

 private:
  void setTarget(LinkItem* target);
  std::set<std::string> draggedOps() const;
  LinkItem* linkUnder(QPointF position, const std::set<std::string>& chain) const;
  bool isFree(const Position& place, const std::set<std::string>& except) const;
  Room roomIn(const Link& link, const Places& places) const;

  CanvasParts m_parts;
  LinkItem* m_target = nullptr;
};

}  // namespace fuseline::ui
