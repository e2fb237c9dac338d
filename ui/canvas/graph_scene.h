// GraphScene: keeps the items of the canvas in step with the session, and turns gestures into edits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/arrange.h"
#include "ui/canvas/auto_layout.h"
#include "ui/canvas/border_item.h"
#include "ui/canvas/canvas_scope.h"
#include "ui/canvas/drag_copy.h"
#include "ui/canvas/frame_layer.h"
#include "ui/canvas/hull_item.h"
#include "ui/canvas/link_item.h"
#include "ui/canvas/node_item.h"
#include "ui/session/edits.h"
#include "ui/session/session.h"
#include "ui/timings/node_statuses.h"

#include <QGraphicsScene>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fuseline::ui {

class GraphScene : public QGraphicsScene {
  Q_OBJECT

 public:
  GraphScene(Session& session, const Theme& theme, QObject* parent = nullptr);
  ~GraphScene() override;

  /// Which part of the document is shown, and edited.
  CanvasScope& scope() { return m_scope; }
  const CanvasScope& scope() const { return m_scope; }
  /// Goes into the selected instance of a block.
  void enterSelected();
  /// To the block around the one that is shown, or to the pipeline.
  void leaveBlock();

  NodeItem* node(const std::string& id) const;
  const std::map<std::string, NodeItem*>& nodes() const { return m_nodes; }
  LinkItem* linkAt(QPointF position) const;
  /// Is there a node, a hull's label or a frame's handle?
  bool isOverSelectable(QPointF position) const;
  const std::vector<HullItem*>& hulls() const { return m_hulls; }
  const std::vector<LinkItem*>& links() const { return m_links; }
  const std::vector<BorderItem*>& borders() const { return m_borders; }
  FrameLayer& frames() { return *m_frames; }
  const FrameLayer& frames() const { return *m_frames; }
  /// What the user should see when everything is fitted: nodes, hulls and labels, frames.
  QRectF contentRect() const;
  /// What others draw beside the pipeline, to be seen when everything is fitted.
  void setSurroundings(const QRectF& rect) { m_surroundings = rect; }
  /// Wires may stick out of that: those that run back, and what they say.
  QRectF wiresRect() const;

  HullFilter hullFilter() const { return m_hullFilter; }
  void setHullFilter(HullFilter filter);
  /// Whether nodes show the error that was measured of them.
  void setErrorsVisible(bool visible);
  bool areErrorsVisible() const { return m_areErrorsVisible; }
  /// Whether hulls show what was measured of their fusions.
  void setSpeedupsVisible(bool visible);
  /// Whether ops show if they were run, and what came of it. Not unless it is asked for.
  void setStatusesVisible(bool visible);
  void setWireLabels(WireLabels labels);
  WireLabels wireLabels() const { return m_wireLabels; }
  /// Of the tensors at all ports.
  std::set<DType> dtypes() const;
  /// Does a node show one?
  bool hasErrors() const;

  /// Puts a palette entry at a place; onto a wire, it goes into the wire, and its neighbours make room.
  void dropEntry(const std::string& entry, QPointF position);
  /// Shows the wire that a drop at this place would go into; nullopt ends it.
  void previewDrop(const std::string& entry, std::optional<QPointF> position);
  /// Adds an entry behind the selected node, or the last one.
  void insertAfterSelection(const std::string& entry);
  /// Puts a palette entry where a wire was dropped, and joins the wire to it.
  void insertAtWire(const std::string& entry, const LooseWire& wire, QPointF position);
  void removeSelected(Reconnect reconnect);
  /// Puts an op of a palette entry in an op's place.
  void replace(const std::string& id, const std::string& entry);
  /// Selects the op, too, and all that it reads from, or with Downstream all that reads from it.
  void selectReachable(const std::string& id, Direction direction);
  /// Of each selected node.
  void selectReachable(Direction direction);
  void duplicateSelected();
  /// Bypasses the selected ops, or uses them again.
  void toggleBypass();
  void copySelected() const;
  /// Copies the selected ops and removes them.
  void cutSelected();
  /// Into the selected wire where there is one that takes it; else beside what is there, with the reason as a hint.
  void paste();
  /// Moves the selected ops into a block of this name; an instance takes their place and the selection.
  void makeBlockOfSelected(const std::string& name);
  /// Makes a block of what repeats in a row, such as the layers of a model, whatever is selected.
  void foldRepeats();
  /// Puts the selected op there so many times in a row, and selects them all.
  void repeatSelected(int count);
  /// Puts the ops of their blocks in place of the selected instances.
  void expandSelected();
  /// Switches the selected fusion, or all that touch the selection, off at this place, or on again.
  void toggleFusions();
  /// The selected nodes where there are two or more, around the corner where they are; else all, and returns true.
  bool layOut();
  /// Aligns or spaces the selected nodes.
  void arrangeSelected(Arrangement arrangement);
  /// Moves the selected nodes, and the selected frames with what lies in them, by so many steps of the grid. Moves of
  /// one selection that follow each other are one undo step.
  void moveSelected(QPoint steps);
  /// Selects the nearest node in a direction, or any when there is no selection.
  void selectNeighbour(QPointF direction);
  /// Selects the op at the other end of a wire out of the selected node, or into it; of several the one that lies
  /// nearest to its row.
  void followWire(bool isDownstream);

  /// Puts away the copies that hang on the pointer. False: there are none.
  bool cancelCopy();

  bool isDrawingWire() const { return m_draft != nullptr; }
  void cancelWire();

  // The same by keys:
  /// Begins a wire at the selected node, or at its next port where one is being drawn; it aims at the nearest input
  /// that has none. At an input with a wire that wire is taken off.
  void startWire();
  /// Aims at the nearest port in a direction that the wire may join.
  void aimWire(QPointF direction);
  /// Joins the port aimed at; leaves a wire that was taken off as it is.
  void finishWire();
  /// Where the wire ends, in scene coordinates.
  QPointF wireEnd() const;

  /// Called by nodes as they move.
  void nodeMoved();
  /// Moves their items together; the document follows when the mouse is released.
  void placeNodes(const std::map<std::string, QPointF>& places);

 Q_SIGNALS:
  /// Items were added or replaced: what others hang on them is to be hung there again.
  void itemsChanged();
  /// Nodes are under way: once for all that are dragged together.
  void nodeDragged();
  /// A sentence for the status line; empty clears it.
  void hint(const QString& sentence);
  void emptyDoubleClicked(QPointF position, QPoint screenPosition);
  void nodeActivated(const QString& id);
  /// A wire that was being drawn ends where there is nothing.
  void wireDropped(const LooseWire& wire, QPointF position, QPoint screenPosition);

 protected:
  void mousePressEvent(QGraphicsSceneMouseEvent* event) override;
  void mouseMoveEvent(QGraphicsSceneMouseEvent* event) override;
  void mouseReleaseEvent(QGraphicsSceneMouseEvent* event) override;
  void mouseDoubleClickEvent(QGraphicsSceneMouseEvent* event) override;
  void helpEvent(QGraphicsSceneHelpEvent* event) override;

 private:
  struct Draft {
    PortRef origin;
    QGraphicsPathItem* line = nullptr;
    std::optional<Link> pickedUp;  // an existing wire that was taken off its input
    QPointF pressedAt;
    bool isSticky = false;  // click, move, click instead of a drag
    std::optional<PortRef> target;
    QPointF end;
    std::size_t key = 0;  // which port of the selected node a key began it at
  };

  void enter(const QString& id);
  void sync();
  void showOther();
  void addErrors(std::vector<NodeLook>& looks) const;
  void addMeasured(std::vector<NodeLook>& looks) const;
  void addStatuses(std::vector<NodeLook>& looks) const;
  void syncNodes(const std::vector<NodeLook>& looks);
  void syncPositions(const std::vector<NodeLook>& looks);
  void syncLinks();
  void syncHulls();
  void markChosenHull();
  bool takePress(const QGraphicsSceneMouseEvent& event);
  bool takeNodePress(const std::string& id, const QGraphicsSceneMouseEvent& event);
  bool beginCopy(const std::string& id, QPointF position);
  DragCopy::Content copyContent() const;
  std::vector<Edit> missingPlaces() const;
  void moveCopy(QPointF position);
  void finishCopy();
  std::string nodeAt(QPointF position) const;
  const HullItem* hullAt(QPointF position) const;
  bool chooseHullAt(QPointF position);
  void followNodes();
  void placeLinks();
  void syncBorders();
  void placeBorders();
  void placeHulls();
  void showSelection();
  void takeSelection();
  std::vector<std::string> selectedNodes() const;
  void moveNodes(const char* label, const std::vector<MoveNode>& moves, std::vector<Edit> others = {});
  void apply(const FragmentEdit& pasted);
  void commitMoves(const QString& mergeKey = {});
  bool isFree(const Position& place, const std::set<std::string>& except) const;
  Room roomIn(const Link& link, const Places& places) const;
  std::vector<Link> selectedWires() const;
  OrphanedOutputs orphans() const;
  void pasteText(const QString& text);

  void selectForMenu(QPointF position);
  std::optional<PortRef> portNear(QPointF position) const;
  bool isOnCanvas(const PortRef& port) const;
  void beginWire(const PortRef& port, QPointF position);
  void dropWire(QPointF position, QPoint screenPosition);
  bool isOverNode(QPointF position) const;
  LinkItem* linkUnder(QPointF position, const std::set<std::string>& chain) const;
  std::optional<Edit> spliceAt(QPointF position, Qt::KeyboardModifiers modifiers) const;
  void previewSplice(QPointF position, Qt::KeyboardModifiers modifiers);
  std::set<std::string> draggedOps() const;
  void setDropTarget(LinkItem* target);
  void markPorts();
  void resumeWire();
  void updateWire(QPointF position, QPoint screenPosition);
  QString aimAt(const std::optional<PortRef>& target, QPointF position);
  QString sentenceOf(const PortRef& target);
  std::optional<PortRef> nearestPort(const std::function<std::optional<double>(const PortRef&, QPointF)>& cost) const;
  QPointF looseEnd() const;
  bool isUnconnected(const PortRef& port) const;
  std::vector<PortRef> originsOf(const NodeItem& item) const;
  void aimByKey(const std::optional<PortRef>& target);
  Link draftLink(const PortRef& target) const;
  Verdict draftVerdict(const PortRef& target) const;

  Session& m_session;
  CanvasScope m_scope;
  const Theme& m_theme;
  std::unique_ptr<FrameLayer> m_frames;
  std::map<std::string, NodeItem*> m_nodes;
  std::vector<LinkItem*> m_links;
  std::vector<HullItem*> m_hulls;
  std::vector<BorderItem*> m_borders;
  std::map<std::string, Position> m_positions;  // as in the document, or automatic
  NodePositions m_automatic;
  std::string m_automaticFor;  // the structure that m_automatic was made for
  std::unique_ptr<Draft> m_draft;
  std::unique_ptr<DragCopy> m_copy;
  HullFilter m_hullFilter = HullFilter::Both;
  NodeStatuses m_statuses;
  WireLabels m_wireLabels = WireLabels::Short;
  bool m_areStatusesVisible = false;
  bool m_areErrorsVisible = true;
  bool m_areSpeedupsVisible = true;
  LinkItem* m_dropTarget = nullptr;
  QRectF m_surroundings;
  bool m_isSyncing = false;
  bool m_isMovingTogether = false;
  bool m_areNodesMoved = false;  // since links and hulls were placed
  bool m_isTakingSelection = false;
};

}  // namespace fuseline::ui
