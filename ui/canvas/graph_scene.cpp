// The canvas: items follow the session; what the mouse does goes to the gesture that it belongs to.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/graph_scene.h"

#include "core/edit/edit_extent.h"
#include "core/lowering/document_operation.h"
#include "ui/canvas/blocks/block_doors.h"
#include "ui/canvas/canvas_commands.h"
#include "ui/canvas/canvas_selection.h"
#include "ui/canvas/copy_gesture.h"
#include "ui/canvas/drop_gesture.h"
#include "ui/canvas/node_moves.h"
#include "ui/canvas/wire_gesture.h"
#include "ui/library/operation_card.h"
#include "ui/session/last_edits.h"
#include "ui/session/plan_steps.h"
#include "ui/theme/format.h"
#include "ui/widgets/tip_lines.h"

#include <QGraphicsSceneHelpEvent>
#include <QGraphicsSceneMouseEvent>
#include <QScopedValueRollback>
#include <QToolTip>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace fuseline::ui {

GraphScene::GraphScene(Session& session, const Theme& theme, QObject* parent)
    : QGraphicsScene(parent),
      m_session(session),
      m_scope(session),
      m_measured(std::make_unique<MeasuredLooks>(session, m_scope)),
      m_items(std::make_unique<CanvasItems>(*this, session, m_scope, theme)),
      m_frames(std::make_unique<FrameLayer>(*this, m_scope, theme)) {
  const CanvasParts parts{*this, session, m_scope, theme, *m_items, *m_frames};
  m_selection = std::make_unique<CanvasSelection>(parts);
  m_commands = std::make_unique<CanvasCommands>(parts);
  m_moves = std::make_unique<NodeMoves>(parts);
  m_wires = std::make_unique<WireGesture>(parts);
  m_drops = std::make_unique<DropGesture>(parts);
  m_copies = std::make_unique<CopyGesture>(parts, *m_commands);
  m_blocks = std::make_unique<BlockDoors>(parts);
  m_scope.keepPlaces([this] { return m_items->keptPlaces(); });
  connectSession();
  connectParts();
  connect(&theme, &Theme::changed, this, [this] { update(); });
  sync();
}

namespace {

/// The pipeline itself, without an open block.
bool isPlain(const CanvasScope& scope) { return !scope.isInside() && &scope.document() == &scope.closedDocument(); }

/// Follows the items. looks: nodes that may be outside the area of the scene.
void showRest(GraphScene& scene, const std::vector<NodeLook>& looks) {
  scene.frames().sync();
  scene.selection().show();
  scene.wires().resume();
  Q_EMIT scene.itemsChanged();
  QRectF area = scene.sceneRect();
  for (const NodeLook& look : looks) area = area.united(scene.node(look.id)->sceneBoundingRect());
  scene.setSceneRect(area);
}

}  // namespace

void GraphScene::connectSession() {
  connect(&m_session.pipeline(), &OpenPipeline::changed, this, &GraphScene::followPipeline);
  connect(&m_session.plan(), &LivePlan::analysisChanged, this, [this] {
    const auto& changed = PlanSteps::of(m_session.plan()).changedOps();
    if (!changed || !syncNodes(*changed, Reach::Looks)) sync();
  });
  connect(&PlanSteps::of(m_session.plan()), &PlanSteps::neighborhoodPlanned, this, [this](const auto& part) {
    if (!isPlain(m_scope) || !m_session.plan().isAnalysing()) return;
    auto looks = looksOf(part->ops, part->document, part->window, m_session.pipeline().problems());
    m_measured->addTo(looks);
    const QScopedValueRollback guard(m_isSyncing, true);
    m_items->showNeighborhood(*part, looks);
  });
  connect(&m_scope, &CanvasScope::pathChanged, this, &GraphScene::showOther);
  connect(&m_scope, &CanvasScope::openChanged, this, &GraphScene::sync);
  connect(this, &QGraphicsScene::selectionChanged, this, [this] {
    if (!m_isSyncing) m_selection->take();
  });
}

void GraphScene::connectParts() {
  connect(m_measured.get(), &MeasuredLooks::changed, this, &GraphScene::sync);
  connect(m_moves.get(), &NodeMoves::refused, this, &GraphScene::sync);
  connect(m_selection.get(), &CanvasSelection::hint, this, &GraphScene::hint);
  connect(m_commands.get(), &CanvasCommands::hint, this, &GraphScene::hint);
  connect(m_moves.get(), &NodeMoves::hint, this, &GraphScene::hint);
  connect(m_wires.get(), &WireGesture::hint, this, &GraphScene::hint);
  connect(m_drops.get(), &DropGesture::hint, this, &GraphScene::hint);
  connect(m_copies.get(), &CopyGesture::hint, this, &GraphScene::hint);
  connect(m_blocks.get(), &BlockDoors::hint, this, &GraphScene::hint);
}

GraphScene::~GraphScene() {
  // The base class deletes the items and reports a changed selection, when this part of the object is gone.
  disconnect();
  clear();
}

/// Nodes of the same name there and here have nothing to do with each other.
void GraphScene::showOther() {
  m_copies->cancel();
  m_wires->cancel();
  {
    const QScopedValueRollback guard(m_isSyncing, true);
    clearSelection();
    m_items->removeNodes();
  }
  sync();
}

QRectF GraphScene::contentRect() const {
  return m_surroundings.united(m_items->contentRect()).united(m_frames->contentRect());
}

namespace {

/// These looks of some nodes, and those that the others have; nullopt: another node is not shown yet.
std::optional<CanvasItems::Looks> looksWith(const std::vector<NodeLook>& some, const PipelineDocument& document,
                                            const CanvasItems& items) {
  std::unordered_map<std::string_view, const NodeLook*> given;
  for (const NodeLook& look : some) given.emplace(look.id, &look);
  CanvasItems::Looks looks;
  const auto add = [&](const std::string& id) {
    const auto found = given.find(id);
    const NodeItem* item = found == given.end() ? items.node(id) : nullptr;
    looks.push_back(found != given.end() ? found->second : item ? &item->look() : nullptr);
  };
  for (const DocumentInput& input : document.inputs()) add(input.id);
  for (const DocumentOp& op : document.ops()) add(op.id);
  for (const DocumentOutput& output : document.outputs()) add(output.id);
  const bool isComplete = std::ranges::none_of(looks, [](const NodeLook* look) { return look == nullptr; });
  return isComplete ? std::optional(std::move(looks)) : std::nullopt;
}

}  // namespace

/// Edits change the look of the nodes that they name. The tensors of others follow with the analysis.
void GraphScene::followPipeline() {
  const auto& edits = LastEdits::of(m_session.pipeline());
  EditExtent extent = edits ? extentOf(*edits) : EditExtent();
  const Reach reach = extent.isAttributesOnly() ? Reach::Looks : Reach::Canvas;
  extent.nodes.merge(extent.movedNodes);
  if (!edits || extent.changesOtherNodes || !syncNodes(extent.nodes, reach)) sync();
}

/// Reach::Looks: wires, hulls and places stay as they are. False: other nodes may look otherwise, too. The looks of
/// many nodes are found faster together.
bool GraphScene::syncNodes(const std::set<std::string>& nodes, Reach reach) {
  constexpr std::size_t kMostNodes = 100;
  const bool isPlanned = m_scope.analysis()->ranks == 1 && m_measured->staleness() == m_syncedStaleness;
  if (!isPlain(m_scope) || !isPlanned || nodes.size() > kMostNodes) return false;
  auto looks = looksOf(nodes, m_scope.document(), *m_scope.analysis(), m_session.pipeline().problems());
  m_measured->addTo(looks);
  if (reach == Reach::Looks) {
    const QScopedValueRollback guard(m_isSyncing, true);
    return m_items->syncOnly(looks);
  }
  {
    const QScopedValueRollback guard(m_isSyncing, true);
    m_drops->forgetTarget();
    if (m_items->syncEdited(FewIds(nodes), looks)) return showRest(*this, looks), true;
  }
  const auto all = looksWith(looks, m_scope.document(), *m_items);
  if (all) syncTo(*all);
  return all.has_value();
}

void GraphScene::sync() {
  m_syncedStaleness = m_measured->staleness();
  auto looks = nodeLooks(m_scope.document(), *m_scope.analysis(),
                         m_scope.isInside() ? std::vector<Diagnostic>() : m_session.pipeline().problems());
  m_measured->addTo(looks);
  CanvasItems::Looks all;
  for (NodeLook& look : looks) {
    look.inside = m_scope.openBlocks().inside(look.id);
    all.push_back(&look);
  }
  syncTo(all);
}

void GraphScene::syncTo(const CanvasItems::Looks& looks) {
  const QScopedValueRollback guard(m_isSyncing, true);
  m_drops->forgetTarget();
  const bool isDragging = mouseGrabberItem() != nullptr;
  m_items->sync(looks, [this, isDragging](const NodeItem& item) {
    return isDragging && (item.isSelected() || m_frames->carries(item.look().id));
  });
  showRest(*this, {});
  setSceneRect(contentRect().adjusted(-2000, -2000, 2000, 2000));
}

void GraphScene::nodeMoved() {
  if (!m_isSyncing) m_moves->noteMoved();
}

// ------------------------------------------------------------------------------------------------------------ mouse

/// A handled press is accepted; otherwise the view would begin a rubber band, which clears the selection.
void GraphScene::mousePressEvent(QGraphicsSceneMouseEvent* event) {
  m_frames->beginDrag();
  event->setAccepted(takePress(*event));
  if (!event->isAccepted()) QGraphicsScene::mousePressEvent(event);
}

/// False where it is about what lies below: a node, a wire, or nothing.
bool GraphScene::takePress(const QGraphicsSceneMouseEvent& event) {
  const QPointF position = event.scenePos();
  const bool isLeft = event.button() == Qt::LeftButton;
  const bool isForMenu = event.button() == Qt::RightButton;
  if (m_wires->isDrawing()) {
    isLeft ? m_wires->drop(position, event.screenPos()) : m_wires->cancel();
    return true;
  }
  if (const auto port = isLeft ? m_items->portNear(position) : std::nullopt) {
    const bool isOfAll = port->isOutput && event.modifiers() == Qt::ControlModifier;
    isOfAll ? m_wires->beginAll(*port, position) : m_wires->begin(*port, position);
    return true;
  }
  if (isLeft && m_blocks->press(position)) return true;
  if ((isLeft || isForMenu) && m_selection->chooseHullAt(position)) return true;
  const std::string id = isLeft ? m_items->nodeAt(position) : std::string();
  const bool dragsCopy = event.modifiers() == Qt::AltModifier;
  if (!id.empty() && (dragsCopy ? m_copies->begin(id, position) : m_selection->addByPress(id, event.modifiers())))
    return true;
  if (isForMenu) m_selection->selectForMenu(position);
  return isForMenu;
}

void GraphScene::mouseMoveEvent(QGraphicsSceneMouseEvent* event) {
  if (m_copies->isActive()) return m_copies->moveTo(event->scenePos());
  if (m_wires->isDrawing()) return m_wires->moveTo(event->scenePos(), event->screenPos());
  m_frames->setCarrying(!(event->modifiers() & Qt::AltModifier));
  m_moves->moveTogether([&] { QGraphicsScene::mouseMoveEvent(event); });
  if (mouseGrabberItem()) m_drops->previewSplice(event->scenePos(), event->modifiers());
}

void GraphScene::mouseReleaseEvent(QGraphicsSceneMouseEvent* event) {
  if (m_copies->isActive()) return m_copies->finish();
  if (m_wires->isDrawing()) return m_wires->release(event->scenePos(), event->screenPos());
  const std::optional<Edit> spliced = m_drops->spliceAt(event->scenePos(), event->modifiers());
  m_drops->endPreview();
  QGraphicsScene::mouseReleaseEvent(event);
  if (spliced && m_scope.apply(*spliced)) return;
  // As in other editors, Ctrl during a drag snaps where one does not, and the other way round.
  m_moves->commit({},
                  event->modifiers() & Qt::ControlModifier ? NodeMoves::Grid::Otherwise : NodeMoves::Grid::AsChosen);
}

void GraphScene::mouseDoubleClickEvent(QGraphicsSceneMouseEvent* event) {
  if (const std::string id = m_items->nodeAt(event->scenePos()); !id.empty()) {
    if (!m_blocks->activate(id, event->scenePos())) Q_EMIT nodeActivated(toQt(id));
    return;
  }
  const FrameItem* frame = m_frames->handleAt(event->scenePos(), FrameLayer::Locked::LeftOut);
  if (frame) return Q_EMIT m_frames->editWanted(toQt(frame->frame().id));
  const RerouteLayer& reroutes = m_items->reroutes();
  if (reroutes.itemAt(event->scenePos())) return;
  if (const LinkItem* link = m_items->linkAt(event->scenePos())) {
    m_scope.apply(reroutes.addition(*link, event->scenePos()));
    return;
  }
  Q_EMIT emptyDoubleClicked(event->scenePos(), event->screenPos());
}

namespace {

/// Cost of all basic ops of the document's op; nullopt before the graph has them.
std::optional<OperationCost> costAt(const Graph& graph, const std::string& id) {
  std::vector<NodeId> nodes;
  for (NodeId node = 0; node < static_cast<NodeId>(graph.nodes().size()); ++node)
    if (graph.node(node).owner == id) nodes.push_back(node);
  return nodes.empty() ? std::nullopt : std::optional(costOf(graph, nodes));
}

QString innerTip(const NodeLook& look) {
  const QString way = GraphScene::tr("Double-click enters the block at %1").arg(toQt(look.id).toHtmlEscaped());
  return QStringLiteral("<b>%1</b><br>%2").arg(look.title.toHtmlEscaped(), way);
}

QString tipOf(const CanvasScope& scope, const NodeItem& item, QPointF scenePosition) {
  const NodeLook& look = item.look();
  if (item.isOnArrow(scenePosition))
    return look.inside ? GraphScene::tr("Close the block (Ctrl+Alt+M)")
                       : GraphScene::tr("Open the block in place (Ctrl+Alt+M); double-click enters it");
  if (const NodeItem* inner = item.innerAt(scenePosition)) return innerTip(inner->look());
  const DocumentOp* op = scope.document().findOp(look.id);
  const OperationPointer operation = op ? operationOf(scope.document(), *op) : nullptr;
  if (!operation || item.portNear(scenePosition)) return item.tipAt(scenePosition);
  if (item.isOnBadge(scenePosition)) return cappedTip(look.problems, GraphScene::tr("and %1 more: see Problems"));
  return cappedTip(operationTip(*operation, toQt(look.id), costAt(scope.analysis()->graph(), look.id)) + look.tip,
                   GraphScene::tr("and %1 more: see Problems"));
}

}  // namespace

void GraphScene::helpEvent(QGraphicsSceneHelpEvent* event) {
  QString tip;
  if (const HullItem* hull = m_items->hullAt(event->scenePos())) tip = hull->look().tip;
  for (const auto& [id, item] : m_items->nodes()) {
    if (item->sceneBoundingRect().contains(event->scenePos())) tip = tipOf(m_scope, *item, event->scenePos());
  }
  if (tip.isEmpty()) return QGraphicsScene::helpEvent(event);  // wires and others have tips of their own
  QToolTip::showText(event->screenPos(), tip);
}

}  // namespace fuseline::ui
