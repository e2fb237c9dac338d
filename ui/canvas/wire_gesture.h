// WireGesture: a wire that is being drawn, by the mouse or by keys.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_parts.h"
#include "ui/session/edits.h"

#include <QObject>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace fuseline::ui {

class WireGesture : public QObject {
  Q_OBJECT

 public:
  explicit WireGesture(const CanvasParts& parts);

  bool isDrawing() const { return m_draft != nullptr; }
  void cancel();
  /// Where the wire ends, in scene coordinates.
  QPointF end() const;
  /// Joins the port aimed at; leaves a wire that was taken off as it is.
  void finish();
  /// Items are new: an analysis that arrives while a wire is being drawn must not take it out of the user's hand.
  void resume();

  // By the mouse:
  /// At an input with a wire that wire is taken off.
  void begin(const PortRef& port, QPointF position);
  /// Takes all wires of an output, for another output to have them; without a wire it begins one.
  void beginAll(const PortRef& output, QPointF position);
  void moveTo(QPointF position, QPoint screenPosition);
  /// A click keeps the wire in hand until the next one.
  void release(QPointF position, QPoint screenPosition);
  /// A new wire that ends nowhere asks what it should lead to.
  void drop(QPointF position, QPoint screenPosition);

  // The same by keys:
  /// Begins a wire at the selected node, or at its next port where one is being drawn; it aims at the nearest input
  /// that has none. At an input with a wire that wire is taken off.
  void start();
  /// Aims at the nearest port in a direction that the wire may join.
  void aim(QPointF direction);

 Q_SIGNALS:
  /// A sentence for the status line; empty clears it.
  void hint(const QString& sentence);
  /// A wire that was being drawn ends where there is nothing.
  void dropped(const LooseWire& wire, QPointF position, QPoint screenPosition);

 private:
  struct Draft {
    PortRef origin;
    QGraphicsPathItem* line = nullptr;
    std::optional<Link> pickedUp;  // an existing wire that was taken off its input
    std::vector<Link> carried;     // all wires of the output `origin`, which are to begin at another one
    QPointF pressedAt;
    bool isSticky = false;  // click, move, click instead of a drag
    std::optional<PortRef> target;
    QPointF end;
    std::size_t key = 0;  // which port of the selected node a key began it at
  };

  bool isOnCanvas(const PortRef& port) const;
  bool isUnconnected(const PortRef& port) const;
  std::vector<PortRef> originsOf(const NodeItem& item) const;
  std::optional<PortRef> nearestPort(const std::function<std::optional<double>(const PortRef&, QPointF)>& cost) const;
  QPointF looseEnd() const;
  QPainterPath pathTo(QPointF end) const;
  Link linkTo(const PortRef& target) const;
  Verdict verdictOn(const PortRef& target) const;
  void markPorts();
  QString aimAt(const std::optional<PortRef>& target, QPointF position);
  QString sentenceOf(const PortRef& target);
  void aimByKey(const std::optional<PortRef>& target);

  CanvasParts m_parts;
  std::unique_ptr<Draft> m_draft;
};

}  // namespace fuseline::ui
