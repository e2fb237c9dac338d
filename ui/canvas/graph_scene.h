// GraphScene: keeps what the canvas shows in step with the session, and hands what the mouse does to gestures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_items.h"
#include "ui/canvas/canvas_scope.h"
#include "ui/canvas/frame_layer.h"
#include "ui/canvas/measured_looks.h"
#include "ui/session/session.h"

#include <QGraphicsScene>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace fuseline::ui {

class BlockDoors;
class CanvasCommands;
class CanvasSelection;
class CopyGesture;
class DropGesture;
class NodeMoves;
class WireGesture;

class GraphScene : public QGraphicsScene {
  Q_OBJECT

 public:
  GraphScene(Session& session, const Theme& theme, QObject* parent = nullptr);
  ~GraphScene() override;

  /// Which part of the document is shown, and edited.
  CanvasScope& scope() { return m_scope; }
  const CanvasScope& scope() const { return m_scope; }
  CanvasItems& canvasItems() { return *m_items; }
  const CanvasItems& canvasItems() const { return *m_items; }
  NodeItem* node(const std::string& id) const { return m_items->node(id); }
  const std::map<std::string, NodeItem*>& nodes() const { return m_items->nodes(); }
  const std::vector<LinkItem*>& links() const { return m_items->links(); }
  MeasuredLooks& measured() { return *m_measured; }
  const MeasuredLooks& measured() const { return *m_measured; }
  FrameLayer& frames() { return *m_frames; }
  const FrameLayer& frames() const { return *m_frames; }
  /// Area to fit: nodes, hulls and labels, frames.
  QRectF contentRect() const;
  /// Area of other drawings next to the pipeline, included when everything is fitted.
  void setSurroundings(const QRectF& rect) { m_surroundings = rect; }

  CanvasSelection& selection() { return *m_selection; }
  CanvasCommands& commands() { return *m_commands; }
  NodeMoves& moves() { return *m_moves; }
  WireGesture& wires() { return *m_wires; }
  DropGesture& drops() { return *m_drops; }
  CopyGesture& copies() { return *m_copies; }
  BlockDoors& blocks() { return *m_blocks; }

  /// Called by nodes as they move.
  void nodeMoved();

 Q_SIGNALS:
  /// Items were added or replaced: what others hang on them is to be hung there again.
  void itemsChanged();
  /// A sentence for the status line; empty clears it.
  void hint(const QString& sentence);
  void emptyDoubleClicked(QPointF position, QPoint screenPosition);
  void nodeActivated(const QString& id);

 protected:
  void mousePressEvent(QGraphicsSceneMouseEvent* event) override;
  void mouseMoveEvent(QGraphicsSceneMouseEvent* event) override;
  void mouseReleaseEvent(QGraphicsSceneMouseEvent* event) override;
  void mouseDoubleClickEvent(QGraphicsSceneMouseEvent* event) override;
  void helpEvent(QGraphicsSceneHelpEvent* event) override;

 private:
  void connectSession();
  void connectParts();
  void sync();
  void syncTo(const CanvasItems::Looks& looks);
  void followPipeline();
  enum class Reach { Looks, Canvas };
  bool syncNodes(const std::set<std::string>& nodes, Reach reach);
  void showOther();
  bool takePress(const QGraphicsSceneMouseEvent& event);

  Session& m_session;
  CanvasScope m_scope;
  std::unique_ptr<MeasuredLooks> m_measured;
  std::unique_ptr<CanvasItems> m_items;
  std::unique_ptr<FrameLayer> m_frames;
  std::unique_ptr<CanvasSelection> m_selection;
  std::unique_ptr<CanvasCommands> m_commands;
  std::unique_ptr<NodeMoves> m_moves;
  std::unique_ptr<WireGesture> m_wires;
  std::unique_ptr<DropGesture> m_drops;
  std::unique_ptr<CopyGesture> m_copies;
  std::unique_ptr<BlockDoors> m_blocks;
  QRectF m_surroundings;
  bool m_isSyncing = false;
  QList<bool> m_syncedStaleness;  // of what was measured
};

}  // namespace fuseline::ui
