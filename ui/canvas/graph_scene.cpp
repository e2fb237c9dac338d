// The canvas: items follow the session; gestures become edits.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/graph_scene.h"

#include "core/edit/apply_edit.h"
#include "ui/numerics/quantizer_chip.h"

#include "core/edit/block_edits.h"
#include "core/edit/fold_repeats.h"
#include "core/lowering/document_operation.h"
#include "ui/canvas/metrics.h"
#include "ui/library/operation_card.h"
#include "ui/numerics/measured_tensor.h"
#include "ui/numerics/numerics_model.h"
#include "ui/theme/format.h"

#include <QClipboard>
#include <QGraphicsSceneHelpEvent>
#include <QGraphicsSceneMouseEvent>
#include <QGuiApplication>
#include <QScopedValueRollback>
#include <QToolTip>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kClickTolerancePx = 4.0;
/// What moved less was clicked with an unsteady hand.
constexpr double kLeastMovePx = 3.0;
constexpr QPoint kPasteOffset(32, 40);
// Left around an op that is dropped into a wire, so that its ports can still be taken.
constexpr int kClearancePx = 16;
constexpr int kLooseEndPx = 20;

Position snappedPosition(QPointF position) {
  const auto snap = [](double value) { return static_cast<int>(std::lround(value / kGridPx)) * kGridPx; };
  return {snap(position.x()), snap(position.y())};
}

/// The left and upper edge of these nodes; without ids, of all.
Position cornerOf(const std::map<std::string, Position>& positions, const std::vector<std::string>& ids = {}) {
  Position corner{std::numeric_limits<int>::max(), std::numeric_limits<int>::max()};
  for (const auto& [id, position] : positions) {
    if (!ids.empty() && std::ranges::count(ids, id) == 0) continue;
    corner = {std::min(corner.x, position.x), std::min(corner.y, position.y)};
  }
  return corner;
}

/// On the row of the op at its other end, or on the next free one.
Position besideOp(const std::map<std::string, Position>& places, const std::string& op, int x, std::set<int>& taken) {
  const auto found = places.find(op);
  int y = (found == places.end() ? 0 : found->second.y) + (kNodeHeightPx - kEndHeightPx) / 2;
  while (!taken.insert(y).second) y += kRowPitchPx;
  return {x, y};
}

/// Blocks say where their ops stand, and rarely where their inputs and outputs do: those come before and behind them,
/// also where only some of the ops have a place of their own.
void placePorts(std::map<std::string, Position>& places, const PipelineDocument& block) {
  const std::map<std::string, Position> given(block.positions().begin(), block.positions().end());
  std::map<std::string, Position> ops;
  for (const DocumentOp& op : block.ops()) ops[op.id] = places[op.id];
  if (given.empty() || ops.empty()) return;
  const auto [first, last] = std::ranges::minmax_element(ops, {}, [](const auto& entry) { return entry.second.x; });
  std::set<int> takenBefore;
  std::set<int> takenBehind;
  const auto isOf = [](const std::string& id) { return [&id](const Wire& wire) { return wire.from.node == id; }; };
  for (const DocumentInput& input : block.inputs()) {
    if (given.contains(input.id)) continue;
    const auto wire = std::ranges::find_if(block.wires(), isOf(input.id));
    const std::string reader = wire == block.wires().end() ? std::string() : wire->to.node;
    places[input.id] = besideOp(ops, reader, first->second.x - kEndWidthPx - kWireGapPx, takenBefore);
  }
  for (const DocumentOutput& output : block.outputs())
    if (!given.contains(output.id))
      places[output.id] = besideOp(ops, output.from.node, last->second.x + kNodeWidthPx + kWireGapPx, takenBehind);
}

/// Everything that the automatic layout depends on.
std::string structureOf(const PipelineDocument& document, const std::vector<NodeLook>& looks) {
  std::string text;
  for (const NodeLook& look : looks) text += look.id + "/" + std::to_string(look.size().height()) + ";";
  for (const Link& link : linksOf(document)) text += toString(link.from) + ">" + toString(link.to) + ";";
  return text;
}

bool fitsIntoWires(const std::string& entry) { return entry != kInputEntry && entry != kOutputEntry; }

/// Of what lies in a direction; nothing: it lies elsewhere. Sideways distance counts twice: an arrow key should follow
/// the row it points along.
std::optional<double> costOfWay(QPointF way, QPointF direction) {
  const double along = QPointF::dotProduct(way, direction);
  if (along <= 0) return std::nullopt;
  return along + 2 * std::abs(way.x() * direction.y() - way.y() * direction.x());
}

std::string moveLabel(const std::vector<Edit>& moves) {
  if (moves.size() == 1) return "Move " + std::get<MoveNode>(moves.front()).id;
  return "Move " + std::to_string(moves.size()) + " nodes";
}

}  // namespace

GraphScene::GraphScene(Session& session, const Theme& theme, QObject* parent)
    : QGraphicsScene(parent),
      m_session(session),
      m_scope(session),
      m_theme(theme),
      m_frames(std::make_unique<FrameLayer>(*this, m_scope, theme)),
      m_statuses(session) {
  setItemIndexMethod(NoIndex);  // items come and go with every edit; the index would cost more than it finds
  connect(&session, &Session::documentChanged, this, &GraphScene::sync);
  connect(&session, &Session::analysisChanged, this, &GraphScene::sync);
  connect(&session, &Session::runFinished, this, &GraphScene::syncHulls);
  connect(&session, &Session::numericsFinished, this, &GraphScene::sync);
  connect(&session, &Session::tensorsCaptured, this, &GraphScene::sync);
  connect(&m_scope, &CanvasScope::pathChanged, this, &GraphScene::showOther);
  connect(&m_scope, &CanvasScope::selectionChanged, this, [this] {
    showSelection();
    if (!m_isTakingSelection) m_frames->clearSelection();
  });
  connect(&m_statuses, &NodeStatuses::changed, this, [this] {
    if (m_areStatusesVisible) sync();
  });
  connect(&theme, &Theme::changed, this, [this] { update(); });
  connect(this, &QGraphicsScene::selectionChanged, this, &GraphScene::takeSelection);
  sync();
}

GraphScene::~GraphScene() {
  // The base class deletes the items and reports a changed selection, when this part of the object is gone.
  disconnect();
  clear();
}

void GraphScene::enterSelected() {
  const QString id = m_scope.singleSelection();
  if (!m_scope.canEnter(id.toStdString()))
    return Q_EMIT hint(tr("Select an instance of a block to open it here. Ctrl+M makes a block of ops."));
  enter(id);
}

void GraphScene::enter(const QString& id) {
  if (const Verdict verdict = m_scope.enter(id); !verdict) Q_EMIT hint(toQt(verdict.reason()));
}

void GraphScene::leaveBlock() {
  if (!m_scope.isInside()) return Q_EMIT hint(tr("This is the pipeline itself; there is nothing around it."));
  m_scope.leaveTo(m_scope.path().size() - 1);
}

/// Nodes of the same name there and here have nothing to do with each other.
void GraphScene::showOther() {
  cancelCopy();
  cancelWire();
  {
    const QScopedValueRollback guard(m_isSyncing, true);
    clearSelection();
    syncNodes({});
  }
  sync();
}

NodeItem* GraphScene::node(const std::string& id) const {
  const auto found = m_nodes.find(id);
  return found == m_nodes.end() ? nullptr : found->second;
}

LinkItem* GraphScene::linkAt(QPointF position) const {
  for (LinkItem* link : m_links) {
    if (link->shape().contains(position)) return link;
  }
  return nullptr;
}

QRectF GraphScene::contentRect() const {
  QRectF rect = m_surroundings;
  for (const auto& [id, item] : m_nodes) rect = rect.united(item->sceneBoundingRect());
  for (const HullItem* hull : m_hulls) rect = rect.united(hull->sceneBoundingRect());
  for (const BorderItem* border : m_borders) rect = rect.united(border->sceneBoundingRect());
  return rect.united(m_frames->contentRect());
}

QRectF GraphScene::wiresRect() const {
  QRectF rect;
  for (const LinkItem* link : m_links)
    if (link->isVisible()) rect = rect.united(link->sceneBoundingRect());
  return rect;
}

// ---------------------------------------------------------------------------------------------------------- syncing

void GraphScene::sync() {
  const QScopedValueRollback guard(m_isSyncing, true);
  auto looks = nodeLooks(m_scope.document(), *m_scope.analysis(),
                         m_scope.isInside() ? std::vector<Diagnostic>() : m_session.fileProblems());
  addErrors(looks);
  addMeasured(looks);
  addStatuses(looks);
  syncNodes(looks);
  syncPositions(looks);
  syncLinks();
  syncHulls();
  syncBorders();
  m_frames->sync();
  showSelection();
  resumeWire();
  Q_EMIT itemsChanged();
  setSceneRect(contentRect().adjusted(-2000, -2000, 2000, 2000));
}

/// Errors of a pipeline that has changed since would be taken for those of this one.
void GraphScene::addErrors(std::vector<NodeLook>& looks) const {
  const auto& numerics = m_session.lastNumerics();
  if (m_scope.isInside() || !m_areErrorsVisible || !numerics || numerics->isStale) return;
  const std::map<std::string, double> errors = errorsByOwner(numerics->report);
  for (NodeLook& look : looks)
    if (const auto found = errors.find(look.id); found != errors.end()) look.rmsError = found->second;
}

/// To the tips of ports.
void GraphScene::addMeasured(std::vector<NodeLook>& looks) const {
  const MeasuredTensors measured(m_session);
  if (measured.isEmpty() || m_scope.isInside()) return;
  const Graph& graph = m_scope.analysis()->graph();
  std::map<Endpoint, Endpoint> sources;
  for (const Link& link : linksOf(m_scope.document())) sources[link.to] = link.from;
  const auto addTo = [&](PortLook& port, const Endpoint& source) {
    const Value* value = valueAt(graph, source);
    const QString text = value ? measured.textOf(graph, *value) : QString();
    if (!text.isEmpty()) port.tip += QStringLiteral("<br>") + text.toHtmlEscaped();
  };
  for (NodeLook& look : looks) {
    for (PortLook& port : look.inputs) addTo(port, sources[{look.id, port.name}]);
    for (PortLook& port : look.outputs) addTo(port, {look.id, port.name});
  }
}

void GraphScene::addStatuses(std::vector<NodeLook>& looks) const {
  if (!m_areStatusesVisible || m_scope.isInside()) return;
  for (NodeLook& look : looks) {
    if (look.kind != NodeKind::Op || look.isNotRun) continue;
    look.status = m_statuses.of(look.id);
    look.tip += QStringLiteral("<br><br>") + m_statuses.textOf(look.id).toHtmlEscaped();
  }
}

void GraphScene::setStatusesVisible(bool visible) {
  m_areStatusesVisible = visible;
  sync();
}

std::set<DType> GraphScene::dtypes() const {
  std::set<DType> found;
  for (const auto& [id, item] : m_nodes)
    for (const auto* ports : {&item->look().inputs, &item->look().outputs})
      for (const PortLook& port : *ports)
        if (port.dtype) found.insert(*port.dtype);
  return found;
}

void GraphScene::setErrorsVisible(bool visible) {
  m_areErrorsVisible = visible;
  sync();
}

void GraphScene::setSpeedupsVisible(bool visible) {
  m_areSpeedupsVisible = visible;
  syncHulls();
}

void GraphScene::setWireLabels(WireLabels labels) {
  m_wireLabels = labels;
  for (LinkItem* item : m_links) item->setLabels(labels);
}

bool GraphScene::hasErrors() const {
  return std::ranges::any_of(m_nodes, [](const auto& entry) { return entry.second->look().rmsError.has_value(); });
}

void GraphScene::syncNodes(const std::vector<NodeLook>& looks) {
  std::map<std::string, NodeItem*> kept;
  for (const NodeLook& look : looks) {
    NodeItem* item = node(look.id);
    if (item) {
      item->setLook(look);
    } else {
      item = new NodeItem(look, m_theme);
      addItem(item);
    }
    kept[look.id] = item;
  }
  for (const auto& [id, item] : m_nodes) {
    if (!kept.contains(id)) delete item;
  }
  m_nodes = std::move(kept);
}

void GraphScene::syncPositions(const std::vector<NodeLook>& looks) {
  const PipelineDocument& document = m_scope.document();
  m_positions.clear();
  for (const auto& [id, position] : document.positions()) m_positions[id] = position;
  if (!std::ranges::all_of(looks, [&](const NodeLook& look) { return m_positions.contains(look.id); })) {
    const std::string structure = structureOf(document, looks);
    if (structure != m_automaticFor) m_automatic = autoLayout(document, looks);
    m_automaticFor = structure;
    m_positions.insert(m_automatic.begin(), m_automatic.end());
    if (m_scope.isInside()) placePorts(m_positions, document);
  }
  // What the mouse holds stays in its hand.
  const bool isDragging = mouseGrabberItem() != nullptr;
  for (const auto& [id, item] : m_nodes)
    if (!isDragging || !(item->isSelected() || m_frames->carries(id)))
      item->setPos(m_positions[id].x, m_positions[id].y);
}

void GraphScene::syncLinks() {
  const std::vector<Link> selected = selectedWires();
  m_dropTarget = nullptr;
  qDeleteAll(m_links);
  m_links.clear();
  for (const Link& link : linksOf(m_scope.document())) {
    auto* item = new LinkItem(link, m_theme);
    const Value* value = valueAt(m_scope.analysis()->graph(), link.from);
    item->setSpec(value ? std::optional(value->spec) : std::nullopt);
    const QuantizerChip chip = value ? quantizerChip(m_scope.analysis()->graph(), *value, link) : QuantizerChip();
    item->setQuantizer(chip.text, chip.tip);
    item->setLabels(m_wireLabels);
    addItem(item);
    item->setSelected(std::ranges::count(selected, link) > 0);
    m_links.push_back(item);
  }
  placeLinks();
}

void GraphScene::placeLinks() {
  for (LinkItem* item : m_links) {
    const Link& link = item->link();
    const NodeItem* from = node(link.from.node);
    const NodeItem* to = node(link.to.node);
    const auto start = from ? from->portPosition({link.from.node, link.from.port, true}) : std::nullopt;
    const auto end = to ? to->portPosition({link.to.node, link.to.port, false}) : std::nullopt;
    item->setVisible(start && end);
    if (start && end) item->setEnds(*start, *end);
  }
}

void GraphScene::syncHulls() {
  qDeleteAll(m_hulls);
  m_hulls.clear();
  for (HullLook& look : hullLooks(m_session, m_scope, m_hullFilter, m_areSpeedupsVisible)) {
    auto* hull = new HullItem(std::move(look), m_theme);
    addItem(hull);
    m_hulls.push_back(hull);
  }
  placeHulls();
  markChosenHull();
}

void GraphScene::syncBorders() {
  qDeleteAll(m_borders);
  m_borders.clear();
  for (FuserBorder& border : fuserBorders(m_scope.analysis()->graph())) {
    m_borders.push_back(new BorderItem(std::move(border), m_theme));
    addItem(m_borders.back());
  }
  placeBorders();
}

/// Across the middle of the first wire between the two ops.
void GraphScene::placeBorders() {
  for (BorderItem* item : m_borders) {
    const auto isBetween = [&](const LinkItem* link) {
      return link->link().from.node == item->border().from && link->link().to.node == item->border().to;
    };
    const auto found = std::ranges::find_if(m_links, isBetween);
    item->setVisible(found != m_links.end() && (*found)->isVisible());
    if (item->isVisible()) item->setPos((*found)->path().pointAtPercent(0.5));
  }
}

void GraphScene::markChosenHull() {
  const QSet<QString>& ids = m_scope.selection();
  for (HullItem* hull : m_hulls) {
    const QStringList& owners = hull->look().owners;
    hull->setChosen(hull->look().rule == m_session.selectedRule() &&
                    ids == QSet<QString>(owners.begin(), owners.end()));
  }
}

void GraphScene::toggleFusions() {
  if (m_scope.isInside())
    return Q_EMIT hint(tr(
        "Fusions are switched outside of blocks, where all of them can be seen. Go out with Ctrl+Up; then press T."));
  if (m_session.isAnalysing()) return;  // what is shown is not what would be switched
  const auto toggle =
      fusionToggle(m_scope.document(), *m_scope.analysis(), m_scope.selection(), m_session.selectedRule());
  if (!toggle) return Q_EMIT hint(tr("Select an op that is part of a fusion, or the label of a fusion; then press T."));
  if (m_scope.apply(toggle->edit)) Q_EMIT hint(tr("%1 T switches it back.").arg(toQt(toggle->hint)));
}

void GraphScene::placeHulls() {
  for (HullItem* hull : m_hulls) {
    std::vector<QRectF> boxes;
    std::vector<QRectF> others;
    for (const QString& owner : hull->look().owners) {
      if (const NodeItem* item = node(owner.toStdString())) boxes.push_back(item->sceneBox());
    }
    for (const auto& [id, item] : m_nodes) {
      if (!hull->look().owners.contains(toQt(id))) others.push_back(item->sceneBox());
    }
    hull->setVisible(!boxes.empty());
    hull->setBoxes(boxes, others);
  }
}

void GraphScene::nodeMoved() {
  if (m_isSyncing) return;
  m_areNodesMoved = true;
  if (!m_isMovingTogether) followNodes();
}

/// Once for all that move together: hulls look at every node.
void GraphScene::followNodes() {
  if (!std::exchange(m_areNodesMoved, false)) return;
  placeLinks();
  placeHulls();
  placeBorders();
  Q_EMIT nodeDragged();
}

void GraphScene::placeNodes(const std::map<std::string, QPointF>& places) {
  if (places.empty()) return;
  {
    const QScopedValueRollback guard(m_isSyncing, true);
    for (const auto& [id, place] : places) node(id)->setPos(place);
  }
  nodeMoved();
}

void GraphScene::setHullFilter(HullFilter filter) {
  m_hullFilter = filter;
  syncHulls();
}

// -------------------------------------------------------------------------------------------------------- selection

void GraphScene::showSelection() {
  const QScopedValueRollback guard(m_isSyncing, true);
  for (const auto& [id, item] : m_nodes) item->setSelected(m_scope.selection().contains(toQt(id)));
  markChosenHull();
}

void GraphScene::takeSelection() {
  if (m_isSyncing) return;
  QSet<QString> ids;
  for (const auto& [id, item] : m_nodes) {
    if (item->isSelected()) ids.insert(toQt(id));
  }
  const QScopedValueRollback guard(m_isTakingSelection, true);
  m_scope.select(ids);
}

void GraphScene::selectNeighbour(QPointF direction) {
  const NodeItem* current = node(m_scope.singleSelection().toStdString());
  const NodeItem* best = nullptr;
  std::optional<double> bestCost;
  for (const auto& [id, item] : m_nodes) {
    if (item == current) continue;
    const std::optional<double> cost =
        current ? costOfWay(item->sceneBox().center() - current->sceneBox().center(), direction) : item->pos().x();
    if (!cost || (bestCost && *bestCost <= *cost)) continue;
    best = item;
    bestCost = cost;
  }
  if (best) m_scope.select({toQt(best->look().id)});
}

void GraphScene::followWire(bool isDownstream) {
  const NodeItem* current = node(m_scope.singleSelection().toStdString());
  if (!current) return;
  const auto offRow = [&](const NodeItem* item) {
    return std::abs(item->sceneBox().center().y() - current->sceneBox().center().y());
  };
  const NodeItem* next = nullptr;
  for (const LinkItem* link : m_links) {
    const auto& [here, there] =
        isDownstream ? std::pair(link->link().from, link->link().to) : std::pair(link->link().to, link->link().from);
    const NodeItem* end = here.node == current->look().id ? node(there.node) : nullptr;
    if (end && (!next || offRow(end) < offRow(next))) next = end;
  }
  if (next) m_scope.select({toQt(next->look().id)});
}

// ------------------------------------------------------------------------------------------------------------ edits

void GraphScene::previewDrop(const std::string& entry, std::optional<QPointF> position) {
  LinkItem* target = position && fitsIntoWires(entry) ? linkAt(*position) : nullptr;
  setDropTarget(target);
}

void GraphScene::setDropTarget(LinkItem* target) {
  if (target == m_dropTarget) return;
  if (m_dropTarget) m_dropTarget->setDropTarget(false);
  m_dropTarget = target;
  if (target) target->setDropTarget(true);
  Q_EMIT hint(target ? tr("Drop to put the op into the wire to %1.").arg(toQt(target->link().to.node)) : QString());
}

/// The selection while it is being moved by one of its ops.
std::set<std::string> GraphScene::draggedOps() const {
  const auto* grabbed = qgraphicsitem_cast<const NodeItem*>(mouseGrabberItem());
  if (!grabbed || !m_scope.selection().contains(toQt(grabbed->look().id))) return {};
  std::set<std::string> ids;
  for (const QString& id : m_scope.selection()) ids.insert(id.toStdString());
  return ids;
}

/// That is none of the chain's own.
LinkItem* GraphScene::linkUnder(QPointF position, const std::set<std::string>& chain) const {
  const auto isUnder = [&](const LinkItem* item) {
    const Link& link = item->link();
    return !chain.contains(link.from.node) && !chain.contains(link.to.node) && item->shape().contains(position);
  };
  const auto found = std::ranges::find_if(m_links, isUnder);
  return found == m_links.end() ? nullptr : *found;
}

/// What the ops that are being moved would do here: with Alt they only move.
std::optional<Edit> GraphScene::spliceAt(QPointF position, Qt::KeyboardModifiers modifiers) const {
  const std::set<std::string> ids = draggedOps();
  const LinkItem* target = ids.empty() ? nullptr : linkUnder(position, ids);
  if (!target || (modifiers & Qt::AltModifier)) return std::nullopt;
  Places places;
  for (const std::string& id : ids) places[id] = snappedPosition(node(id)->pos());
  const Room room = roomIn(target->link(), places);
  const Result<Edit> edit = spliceChain(m_scope.document(), ids, target->link(), places, room);
  return edit ? std::optional(*edit) : std::nullopt;
}

void GraphScene::previewSplice(QPointF position, Qt::KeyboardModifiers modifiers) {
  setDropTarget(spliceAt(position, modifiers) ? linkUnder(position, draggedOps()) : nullptr);
}

/// Whether a node at this place would cover none but these, with room left for a bit of wire.
bool GraphScene::isFree(const Position& place, const std::set<std::string>& except) const {
  const QRectF box(place.x - kClearancePx, place.y - kClearancePx, kNodeWidthPx + 2 * kClearancePx,
                   kNodeHeightPx + 2 * kClearancePx);
  return std::ranges::none_of(m_nodes, [&](const auto& entry) {
    return !except.contains(entry.first) && entry.second->sceneBox().intersects(box);
  });
}

/// Of ops that are dropped on a wire: where there is none, neighbours make it, or all are laid out automatically.
Room GraphScene::roomIn(const Link& link, const Places& places) const {
  const auto isPlaced = [&](const std::string& end) {
    return std::ranges::any_of(m_scope.document().positions(), [&](const auto& entry) { return entry.first == end; });
  };
  std::set<std::string> ids;
  for (const auto& [id, place] : places) ids.insert(id);
  const bool isThere = isPlaced(link.from.node) && isPlaced(link.to.node) &&
                       std::ranges::all_of(places, [&](const auto& entry) { return isFree(entry.second, ids); });
  return isThere ? Room::IsThere : Room::IsMade;
}

void GraphScene::dropEntry(const std::string& entry, QPointF position) {
  previewDrop({}, std::nullopt);
  const Position place = snappedPosition(position - QPointF(kNodeWidthPx / 2.0, kNodeHeightPx / 2.0));
  const LinkItem* target = fitsIntoWires(entry) ? linkAt(position) : nullptr;
  const bool stays = target && roomIn(target->link(), {{std::string(), place}}) == Room::IsThere;
  const NodeEdit added = target ? splice(m_scope.document(), m_scope.analysis()->graph(), entry, target->link(),
                                         stays ? std::optional(place) : std::nullopt)
                                : addNode(m_scope.document(), entry, place);
  if (m_scope.apply(added.edit)) m_scope.select({toQt(added.id)});
}

void GraphScene::insertAfterSelection(const std::string& entry) {
  const NodeEdit added =
      insertAfter(m_scope.document(), m_scope.analysis()->graph(), entry, m_scope.singleSelection().toStdString());
  if (m_scope.apply(added.edit)) m_scope.select({toQt(added.id)});
}

void GraphScene::insertAtWire(const std::string& entry, const LooseWire& wire, QPointF position) {
  // The port that takes the wire comes to stand where the wire was dropped.
  const QPointF corner(wire.isFromOutput ? 0.0 : kNodeWidthPx, kNodeHeightPx / 2.0);
  const auto added =
      addAtWire(m_scope.document(), m_scope.analysis()->graph(), entry, wire, snappedPosition(position - corner));
  if (added && m_scope.apply(added->edit)) m_scope.select({toQt(added->id)});
}

/// An output of a block goes only where it is itself removed: all of its instances have wires there.
OrphanedOutputs GraphScene::orphans() const {
  return m_scope.isInside() ? OrphanedOutputs::Kept : OrphanedOutputs::Removed;
}

void GraphScene::removeSelected(Reconnect reconnect) {
  const std::vector<Link> links = selectedWires();
  std::vector<Edit> edits = m_frames->removals();
  const bool areFramesAlone = links.empty() && m_scope.selection().isEmpty();
  if (areFramesAlone && edits.empty()) return;
  if (!areFramesAlone)
    edits.insert(edits.begin(), removeNodes(m_scope.document(), m_scope.selection(), links, reconnect, orphans()));
  m_scope.apply(EditGroup{.label = fuseline::describe(edits.front()), .edits = std::move(edits)});
}

void GraphScene::replace(const std::string& id, const std::string& entry) {
  const Result<Edit> edit = replaceOp(m_scope.document(), m_scope.analysis()->graph(), id, entry);
  if (!edit) return Q_EMIT hint(toQt(edit.error().message));
  if (m_scope.apply(*edit)) m_scope.select({toQt(id)});
}

void GraphScene::repeatSelected(int count) {
  const Result<RepeatedOp> row = repeatOp(m_scope.document(), m_scope.singleSelection().toStdString(), count);
  if (!row) return Q_EMIT hint(toQt(row.error().message));
  if (!m_scope.apply(row->edit)) return;
  QSet<QString> ids;
  for (const std::string& id : row->ids) ids.insert(toQt(id));
  m_scope.select(ids);
}

void GraphScene::selectReachable(const std::string& id, Direction direction) {
  QSet<QString> ids = m_scope.selection();
  for (const std::string& found : reachable(m_scope.document(), id, direction)) ids.insert(toQt(found));
  m_scope.select(ids);
}

void GraphScene::selectReachable(Direction direction) {
  if (m_scope.selection().isEmpty()) return Q_EMIT hint(tr("Select the ops to go on from."));
  for (const QString& id : QSet<QString>(m_scope.selection())) selectReachable(id.toStdString(), direction);
}

void GraphScene::copySelected() const {
  const QString text = copyFragment(m_scope.document(), m_scope.selection(), m_frames->selected());
  if (!text.isEmpty()) QGuiApplication::clipboard()->setText(text);
}

/// Of the selection only what the clipboard then has.
void GraphScene::cutSelected() {
  QSet<QString> ops;
  for (const DocumentOp& op : m_scope.document().ops())
    if (m_scope.selection().contains(toQt(op.id))) ops.insert(toQt(op.id));
  std::vector<Edit> edits = m_frames->removals();
  if (ops.isEmpty() && edits.empty()) return Q_EMIT hint(tr("Select the ops to cut."));
  copySelected();
  if (!ops.isEmpty()) edits.insert(edits.begin(), removeNodes(m_scope.document(), ops, {}, Reconnect::No, orphans()));
  m_scope.apply(EditGroup{.label = fuseline::describe(edits.front()), .edits = std::move(edits)});
}

void GraphScene::paste() { pasteText(QGuiApplication::clipboard()->text()); }

void GraphScene::pasteText(const QString& text) {
  const std::vector<Link> wires = selectedWires();
  const bool isIntoWire = wires.size() == 1;
  const Result<FragmentEdit> into =
      isIntoWire ? pasteIntoWire(m_scope.document(), text, wires.front()) : Result<FragmentEdit>(Error{});
  if (into) return apply(*into);
  const Result<FragmentEdit> pasted = pasteFragment(m_scope.document(), text, kPasteOffset);
  if (!pasted) return Q_EMIT hint(toQt(pasted.error().message));
  apply(*pasted);
  if (isIntoWire)
    Q_EMIT hint(
        tr("Not put into the wire to %1: %2").arg(toQt(toString(wires.front().to)), toQt(into.error().message)));
}

std::vector<Link> GraphScene::selectedWires() const {
  std::vector<Link> links;
  for (const LinkItem* item : m_links)
    if (item->isSelected()) links.push_back(item->link());
  return links;
}

void GraphScene::apply(const FragmentEdit& pasted) {
  if (!m_scope.apply(pasted.edit)) return;
  clearSelection();
  m_scope.select(idsOf(pasted.ids));
  for (const std::string& id : pasted.frames)
    if (FrameItem* frame = m_frames->item(id)) frame->setSelected(true);
}

void GraphScene::duplicateSelected() {
  const QString text = copyFragment(m_scope.document(), m_scope.selection(), m_frames->selected());
  if (!text.isEmpty()) pasteText(text);
}

/// Of the selection, to which the node at the pointer comes to belong. False: there is no op in it.
bool GraphScene::beginCopy(const std::string& id, QPointF position) {
  if (!m_scope.selection().contains(toQt(id))) m_scope.select({toQt(id)});
  const DragCopy::Content content = copyContent();
  if (content.nodes.empty()) return false;
  m_copy = std::make_unique<DragCopy>(*this, m_theme, content, position);
  return true;
}

DragCopy::Content GraphScene::copyContent() const {
  DragCopy::Content content;
  PipelineDocument placed = m_scope.document();
  for (const Edit& place : missingPlaces()) (void)applyEdit(placed, place);
  content.fragment = copyFragment(placed, m_scope.selection(), m_frames->selected());
  for (const auto& [id, item] : m_nodes)
    if (item->look().kind == NodeKind::Op && m_scope.selection().contains(toQt(id))) content.nodes[id] = item;
  for (const LinkItem* item : m_links)
    if (content.nodes.contains(item->link().from.node) && content.nodes.contains(item->link().to.node))
      content.links.push_back(item);
  for (const std::string& id : m_frames->selected()) content.frames.push_back(m_frames->item(id));
  return content;
}

/// What the automatic layout gave, as edits: then all stay where they are when others come.
std::vector<Edit> GraphScene::missingPlaces() const {
  std::map<std::string, Position> missing = m_positions;
  for (const auto& [id, place] : m_scope.document().positions()) missing.erase(id);
  std::vector<Edit> edits;
  for (const auto& [id, place] : missing) edits.push_back(MoveNode{.id = id, .position = place});
  return edits;
}

void GraphScene::moveCopy(QPointF position) {
  const bool wasDragged = m_copy->isDragged();
  m_copy->moveTo(position);
  if (m_copy->isDragged() && !wasDragged) Q_EMIT hint(tr("Let go to put the copy here; Esc gives up."));
}

void GraphScene::finishCopy() {
  const std::unique_ptr<DragCopy> copy = std::move(m_copy);
  Q_EMIT hint({});
  if (!copy->isDragged()) return;
  auto pasted = pasteFragment(m_scope.document(), copy->fragment(), copy->offset());
  if (!pasted) return;
  std::vector<Edit> edits = missingPlaces();
  edits.push_back(std::move(pasted->edit));
  const auto count = pasted->ids.size();
  const std::string label = "Duplicate " + std::to_string(count) + (count == 1 ? " node" : " nodes");
  pasted->edit = EditGroup{.label = label, .edits = std::move(edits)};
  apply(*pasted);
}

bool GraphScene::cancelCopy() {
  if (!m_copy) return false;
  m_copy.reset();
  Q_EMIT hint({});
  return true;
}

void GraphScene::toggleBypass() {
  const Result<Edit> bypass = ui::toggleBypass(m_scope.document(), m_scope.selection());
  if (!bypass) return Q_EMIT hint(toQt(bypass.error().message));
  if (m_scope.apply(*bypass)) Q_EMIT hint(tr("%1. D takes it back.").arg(toQt(fuseline::describe(*bypass))));
}

void GraphScene::makeBlockOfSelected(const std::string& name) {
  std::vector<std::string> ids;
  for (const DocumentOp& op : m_scope.document().ops()) {
    if (m_scope.selection().contains(toQt(op.id))) ids.push_back(op.id);
  }
  const Result<NewBlock> made = makeBlock(m_scope.document(), ids, name);
  if (!made) {
    Q_EMIT hint(toQt(made.error().message));
    return;
  }
  if (m_scope.apply(made->edit, std::span(&made->moves, 1))) m_scope.select({toQt(made->instance)});
}

void GraphScene::foldRepeats() {
  const std::optional<FoldedRepeats> folded = fuseline::foldRepeats(m_scope.document());
  if (!folded)
    return Q_EMIT hint(
        tr("No ops repeat: a block is made of %1 ops or more that stand in a row several times, the same "
           "each time.")
            .arg(kFewestRepeatedOps));
  const PlaceMoves moves = movesOf(folded->places);
  if (m_scope.apply(folded->edit, std::span(&moves, 1)))
    Q_EMIT hint(tr("What stands there %1 times is block %2 now.").arg(folded->numInstances).arg(toQt(folded->block)));
}

void GraphScene::expandSelected() {
  PipelineDocument scratch = m_scope.document();
  EditGroup group{.label = "Expand block", .edits = {}};
  std::vector<PlaceMoves> moves;
  QSet<QString> ids;
  for (const DocumentOp& op : m_scope.document().ops()) {
    if (!m_scope.selection().contains(toQt(op.id)) || blockNameOf(op).empty()) continue;
    const Result<ExpandedBlock> expanded = expandBlock(scratch, op.id);
    if (!expanded || !applyEdit(scratch, expanded->edit)) continue;
    group.edits.push_back(expanded->edit);
    moves.push_back(expanded->moves);
    for (const std::string& inner : expanded->ids) ids.insert(toQt(inner));
  }
  if (group.edits.empty()) {
    Q_EMIT hint(tr("Select an instance of a block; then it can be expanded."));
  } else if (m_scope.apply(group, moves)) {
    m_scope.select(ids);
  }
}

std::vector<std::string> GraphScene::selectedNodes() const {
  std::vector<std::string> ids;
  for (const auto& [id, item] : m_nodes)
    if (item->isSelected()) ids.push_back(id);
  return ids;
}

/// One undo step; nodes that stay where they are are left out.
void GraphScene::moveNodes(const char* label, const std::vector<MoveNode>& moves, std::vector<Edit> others) {
  std::vector<Edit> edits = std::move(others);
  for (const MoveNode& move : moves)
    if (m_positions[move.id] != move.position) edits.push_back(move);
  if (!edits.empty()) m_scope.apply(EditGroup{.label = label, .edits = std::move(edits)});
}

bool GraphScene::layOut() {
  const std::vector<std::string> selected = selectedNodes();
  const bool areSome = selected.size() > 1;
  std::vector<NodeLook> looks;
  for (const auto& [id, item] : m_nodes)
    if (!areSome || item->isSelected()) looks.push_back(item->look());
  const NodeBoxes before = m_frames->nodeBoxes();
  const NodePositions laidOut = autoLayout(m_scope.document(), looks, framedGroups(m_scope.document(), before));
  const Position from = cornerOf(laidOut);
  const Position to = areSome ? cornerOf(m_positions, selected) : from;
  NodeBoxes after = before;
  std::vector<MoveNode> moves;
  for (const auto& [id, place] : laidOut) {
    const QPoint target(place.x - from.x + to.x, place.y - from.y + to.y);
    moves.push_back({.id = id, .position = Position{target.x(), target.y()}});
    after[id].translate(target - node(id)->pos().toPoint());
  }
  moveNodes("Lay out", moves, refitFrames(m_scope.document(), before, after));
  return !areSome;
}

void GraphScene::arrangeSelected(Arrangement arrangement) {
  NodeBoxes boxes;
  for (const std::string& id : selectedNodes())
    boxes[id] = QRect(QPoint(m_positions[id].x, m_positions[id].y), node(id)->look().size().toSize());
  if (boxes.size() < 2) return Q_EMIT hint(tr("Select two nodes or more; then they can be arranged."));
  moveNodes("Arrange", arrange(boxes, arrangement));
}

void GraphScene::moveSelected(QPoint steps) {
  m_frames->beginDrag();
  QList<QGraphicsItem*> moved = selectedItems();
  moved.removeIf([](const QGraphicsItem* item) { return !(item->flags() & QGraphicsItem::ItemIsMovable); });
  if (moved.isEmpty()) return Q_EMIT hint(tr("Select what shall move: ops, or frames that are not locked."));
  {
    const QScopedValueRollback guard(m_isMovingTogether, true);
    for (QGraphicsItem* item : std::as_const(moved)) item->moveBy(steps.x() * kGridPx, steps.y() * kGridPx);
  }
  followNodes();
  std::vector<std::string> ids = selectedNodes();
  std::ranges::copy(m_frames->selected(), std::back_inserter(ids));
  commitMoves(QStringLiteral("move ") + toQt(fmt::format("{}", fmt::join(ids, ","))));
}

void GraphScene::commitMoves(const QString& mergeKey) {
  std::vector<Edit> moves;
  for (const auto& [id, item] : m_nodes) {
    const QPoint exact = item->pos().toPoint();
    const Position place = m_frames->carries(id) ? Position{exact.x(), exact.y()} : snappedPosition(item->pos());
    const QPointF way = item->pos() - QPointF(m_positions[id].x, m_positions[id].y);
    if (way.manhattanLength() < kLeastMovePx)
      item->setPos(m_positions[id].x, m_positions[id].y);
    else if (m_positions[id] != place)
      moves.push_back(MoveNode{.id = id, .position = place});
  }
  std::vector<Edit> frames = m_frames->changes();
  if (moves.empty() && frames.empty()) return;
  const std::string label = frames.empty() ? moveLabel(moves) : m_frames->changeLabel();
  moves.insert(moves.end(), frames.begin(), frames.end());
  if (!m_scope.apply(EditGroup{.label = label, .edits = std::move(moves)}, mergeKey)) sync();
}

// ------------------------------------------------------------------------------------------------------------ wires

std::optional<PortRef> GraphScene::portNear(QPointF position) const {
  for (const auto& [id, item] : m_nodes) {
    if (const auto port = item->portNear(position)) return port;
  }
  return std::nullopt;
}

/// A wire of a file may begin at an op that is not there, or at a port that it has not.
bool GraphScene::isOnCanvas(const PortRef& port) const {
  const NodeItem* const item = node(port.node);
  return item && item->portPosition(port);
}

void GraphScene::beginWire(const PortRef& port, QPointF position) {
  m_draft = std::make_unique<Draft>(Draft{.origin = port, .pressedAt = position});
  if (!port.isOutput) {
    const auto link = linkInto(m_scope.document(), port.endpoint());
    const PortRef origin = link ? PortRef{link->from.node, link->from.port, true} : port;
    if (link && isOnCanvas(origin)) {
      m_draft->pickedUp = link;
      m_draft->origin = origin;
    }
  }
  m_draft->line = addPath(QPainterPath(), QPen(m_theme.colors().accent, 2.4, Qt::SolidLine, Qt::RoundCap));
  m_draft->line->setZValue(20);
  resumeWire();
}

/// An analysis that arrives while a wire is being drawn must not take it out of the user's hand.
void GraphScene::resumeWire() {
  if (!m_draft) return;
  if (!isOnCanvas(m_draft->origin)) return cancelWire();
  for (LinkItem* item : m_links) {
    if (m_draft->pickedUp == item->link()) item->hide();
  }
  markPorts();
  const std::optional<PortRef> target = std::exchange(m_draft->target, std::nullopt);
  const NodeItem* const aimed = target ? node(target->node) : nullptr;
  if (aimed && aimed->portPosition(*target)) aimAt(target, m_draft->end);
}

Link GraphScene::draftLink(const PortRef& target) const {
  const PortRef& origin = m_draft->origin;
  const PortRef& from = origin.isOutput ? origin : target;
  const PortRef& to = origin.isOutput ? target : origin;
  return {.from = from.endpoint(), .to = to.endpoint()};
}

Verdict GraphScene::draftVerdict(const PortRef& target) const {
  if (target.isOutput == m_draft->origin.isOutput) {
    return Verdict::no(target.isOutput ? tr("An output can only be joined to an input.").toStdString()
                                       : tr("An input can only be joined to an output.").toStdString());
  }
  const Link link = draftLink(target);
  return linkVerdict(m_scope.document(), link.from, link.to);
}

/// Quick for large pipelines: a wire is illegal within one side and where it would close a cycle.
void GraphScene::markPorts() {
  const PortRef& origin = m_draft->origin;
  const auto forbidden =
      reachable(m_scope.document(), origin.node, origin.isOutput ? Direction::Upstream : Direction::Downstream);
  for (const auto& [id, item] : m_nodes) {
    for (const PortRef& port : item->ports()) {
      if (port == origin) continue;
      const bool isIllegal = port.isOutput == origin.isOutput || forbidden.contains(id);
      item->setMark(port, isIllegal ? PortMark::Illegal : PortMark::Legal);
    }
  }
}

void GraphScene::updateWire(QPointF position, QPoint screenPosition) {
  const std::optional<PortRef> before = m_draft->target;
  const QString sentence = aimAt(portNear(position), position);
  if (m_draft->target == before) return;
  Q_EMIT hint(sentence);
  sentence.isEmpty() ? QToolTip::hideText() : QToolTip::showText(screenPosition + QPoint(14, 14), sentence);
}

/// Draws the wire to the target, or to the place where there is none; returns what there is to say of the target.
QString GraphScene::aimAt(const std::optional<PortRef>& target, QPointF position) {
  const auto origin = node(m_draft->origin.node)->portPosition(m_draft->origin);
  const bool isTarget = target && *target != m_draft->origin;
  const QPointF end = isTarget ? *node(target->node)->portPosition(*target) : position;
  m_draft->end = end;
  m_draft->line->setPath(m_draft->origin.isOutput ? wirePath(*origin, end) : wirePath(end, *origin));
  if (target == m_draft->target) return {};
  m_draft->target = target;
  markPorts();
  return isTarget ? sentenceOf(*target) : QString();
}

/// Marks the target, too.
QString GraphScene::sentenceOf(const PortRef& target) {
  const Verdict verdict = draftVerdict(target);
  const Link link = draftLink(target);
  if (verdict) node(target.node)->setMark(target, PortMark::Target);
  QPen pen = m_draft->line->pen();
  pen.setStyle(verdict ? Qt::SolidLine : Qt::DotLine);
  pen.setColor(verdict ? m_theme.colors().accent : m_theme.colors().error);
  m_draft->line->setPen(pen);
  if (!verdict) return toQt(verdict.reason());
  const QString warning = toQt(linkWarning(m_scope.document(), link.from, link.to));
  return warning.isEmpty() ? warning : tr("Can be connected, but: %1").arg(warning);
}

void GraphScene::finishWire() {
  const std::unique_ptr<Draft> keep = std::make_unique<Draft>(*m_draft);
  const std::optional<PortRef> target = keep->target;
  const bool isPort = target && *target != keep->origin;
  const Verdict verdict = isPort ? draftVerdict(*target) : Verdict::yes();
  const Link link = isPort ? draftLink(*target) : Link{};
  cancelWire();
  if (!verdict) Q_EMIT hint(toQt(verdict.reason()));
  const PipelineDocument& document = m_scope.document();
  if (isPort && verdict) {
    const bool isSame = keep->pickedUp && keep->pickedUp->to == link.to;
    if (isSame) return;
    Edit connectEdit = linkEdit(document, link.from, link.to);
    if (!keep->pickedUp) {
      m_scope.apply(connectEdit);
    } else {
      EditGroup group{.label = "Reconnect to " + toString(link.to), .edits = {unlinkEdit(document, *keep->pickedUp)}};
      group.edits.push_back(std::move(connectEdit));
      m_scope.apply(group);
    }
  } else if (!isPort && keep->pickedUp) {
    m_scope.apply(unlinkEdit(document, *keep->pickedUp));
  }
}

bool GraphScene::isOverNode(QPointF position) const {
  return std::ranges::any_of(m_nodes, [&](const auto& entry) { return entry.second->sceneBox().contains(position); });
}

/// A new wire that ends nowhere asks what it should lead to.
void GraphScene::dropWire(QPointF position, QPoint screenPosition) {
  updateWire(position, screenPosition);
  const LooseWire wire{m_draft->origin.endpoint(), m_draft->origin.isOutput};
  const bool isLoose = !m_draft->target && !m_draft->pickedUp && !isOverNode(position);
  finishWire();
  if (isLoose) Q_EMIT wireDropped(wire, position, screenPosition);
}

void GraphScene::cancelWire() {
  if (!m_draft) return;
  delete m_draft->line;
  m_draft.reset();
  for (const auto& [id, item] : m_nodes) item->clearMarks();
  for (LinkItem* item : m_links) item->show();
  QToolTip::hideText();
  Q_EMIT hint({});
}

// ----------------------------------------------------------------------------------------------------- wires by keys

bool GraphScene::isUnconnected(const PortRef& port) const {
  const PipelineDocument& document = m_scope.document();
  if (!port.isOutput) return !linkInto(document, port.endpoint());
  return std::ranges::none_of(linksOf(document), [&](const Link& link) { return link.from == port.endpoint(); });
}

/// In the order in which keys begin wires at them: outputs, inputs, and of each those without a wire first.
std::vector<PortRef> GraphScene::originsOf(const NodeItem& item) const {
  std::vector<PortRef> ports = item.ports();
  std::ranges::stable_sort(ports,
                           [&](const PortRef& a, const PortRef& b) { return isUnconnected(a) && !isUnconnected(b); });
  std::ranges::stable_partition(ports, &PortRef::isOutput);
  return ports;
}

void GraphScene::startWire() {
  const NodeItem* item = node(m_scope.singleSelection().toStdString());
  if (!item) return Q_EMIT hint(tr("Select the op where the wire begins; then press W."));
  const std::vector<PortRef> ports = originsOf(*item);
  if (ports.empty()) return;
  const std::size_t key = m_draft ? (m_draft->key + 1) % ports.size() : 0;
  cancelWire();
  beginWire(ports[key], *item->portPosition(ports[key]));
  m_draft->key = key;
  m_draft->isSticky = true;
  const QPointF from = *node(m_draft->origin.node)->portPosition(m_draft->origin);
  const QPointF ahead = m_draft->origin.isOutput ? QPointF(1, 0) : QPointF(-1, 0);
  const auto costOfFree = [&](const PortRef& port, QPointF place) {
    constexpr double kBehindPx = 1e6;  // what lies ahead comes first, however far it is
    const QPointF way = place - from;
    return port.isOutput || isUnconnected(port)
               ? std::optional(costOfWay(way, ahead).value_or(kBehindPx + way.manhattanLength()))
               : std::nullopt;
  };
  aimByKey(m_draft->pickedUp ? std::nullopt : nearestPort(costOfFree));
}

void GraphScene::aimWire(QPointF direction) {
  const QPointF from = wireEnd();
  const auto target = nearestPort([&](const PortRef&, QPointF place) { return costOfWay(place - from, direction); });
  if (target) aimByKey(target);
}

QPointF GraphScene::wireEnd() const { return m_draft ? m_draft->end : QPointF(); }

/// Of those that the wire may join; cost: nothing where the port is out of the question.
std::optional<PortRef> GraphScene::nearestPort(
    const std::function<std::optional<double>(const PortRef&, QPointF)>& cost) const {
  std::optional<PortRef> nearest;
  double lowest = 0;
  for (const auto& [id, item] : m_nodes)
    for (const PortRef& port : item->ports()) {
      const std::optional<double> each = cost(port, *item->portPosition(port));
      if (!each || (nearest && *each >= lowest) || port == m_draft->origin || !draftVerdict(port)) continue;
      nearest = port;
      lowest = *each;
    }
  return nearest;
}

/// Of a wire without a target: before the input that it was taken off, or where it begins.
QPointF GraphScene::looseEnd() const {
  if (!m_draft->pickedUp) return *node(m_draft->origin.node)->portPosition(m_draft->origin);
  const Endpoint& input = m_draft->pickedUp->to;
  return *node(input.node)->portPosition({input.node, input.port, false}) - QPointF(kLooseEndPx, 0);
}

void GraphScene::aimByKey(const std::optional<PortRef>& target) {
  const auto name = [](const PortRef& port) { return toQt(toString(port.endpoint())); };
  const QString sentence = aimAt(target, target ? QPointF() : looseEnd());
  if (!sentence.isEmpty()) return Q_EMIT hint(sentence);
  if (target)
    Q_EMIT hint(tr("From %1 to %2: Enter connects, arrows aim elsewhere, W begins at another port, Esc gives up.")
                    .arg(name(m_draft->origin), name(*target)));
  else if (m_draft->pickedUp)
    Q_EMIT hint(tr("Off %1: Enter leaves it off, arrows aim elsewhere, Esc puts it back.")
                    .arg(toQt(toString(m_draft->pickedUp->to))));
  else
    Q_EMIT hint(tr("From %1: arrows choose a port.").arg(name(m_draft->origin)));
}

// ------------------------------------------------------------------------------------------------------------ mouse

/// What is taken here is accepted: else the view would begin a rubber band, which clears the selection.
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
  if (m_draft) {
    isLeft ? dropWire(position, event.screenPos()) : cancelWire();
    return true;
  }
  if (const auto port = isLeft ? portNear(position) : std::nullopt) {
    beginWire(*port, position);
    return true;
  }
  if ((isLeft || isForMenu) && chooseHullAt(position)) return true;
  const std::string id = isLeft ? nodeAt(position) : std::string();
  if (!id.empty() && takeNodePress(id, event)) return true;
  if (isForMenu) selectForMenu(position);
  return isForMenu;
}

std::string GraphScene::nodeAt(QPointF position) const {
  const auto found =
      std::ranges::find_if(m_nodes, [&](const auto& entry) { return entry.second->sceneBox().contains(position); });
  return found == m_nodes.end() ? std::string() : found->first;
}

/// Shift adds the node to the selection; with Alt all before it, and Ctrl and Alt add all behind it. Alt alone drags a
/// copy. False: the press is the node's own.
bool GraphScene::takeNodePress(const std::string& id, const QGraphicsSceneMouseEvent& event) {
  const Qt::KeyboardModifiers modifiers = event.modifiers();
  if (modifiers == Qt::AltModifier) return beginCopy(id, event.scenePos());
  if (modifiers == (Qt::ShiftModifier | Qt::AltModifier))
    selectReachable(id, Direction::Upstream);
  else if (modifiers == (Qt::ControlModifier | Qt::AltModifier))
    selectReachable(id, Direction::Downstream);
  else if (modifiers == Qt::ShiftModifier)
    m_scope.select(m_scope.selection() + QSet<QString>{toQt(id)});
  else
    return false;
  return true;
}

/// Where its label is.
const HullItem* GraphScene::hullAt(QPointF position) const {
  const auto hit =
      std::ranges::find_if(m_hulls, [&](const HullItem* hull) { return hull->labelArea().contains(position); });
  return hit == m_hulls.end() ? nullptr : *hit;
}

bool GraphScene::isOverSelectable(QPointF position) const {
  return !nodeAt(position).empty() || hullAt(position) || m_frames->handleAt(position, FrameLayer::Locked::Included);
}

bool GraphScene::chooseHullAt(QPointF position) {
  const HullItem* hull = hullAt(position);
  if (!hull) return false;
  const HullLook& look = hull->look();
  const QSet<QString> owners(look.owners.begin(), look.owners.end());
  m_scope.isInside() ? m_scope.select(owners) : m_session.selectFusion(owners, look.rule);
  return true;
}

// The context menu is about what is under the pointer, or about the selection if that is a part of it.
void GraphScene::selectForMenu(QPointF position) {
  if (const QString id = toQt(nodeAt(position)); !id.isEmpty()) {
    if (!m_scope.selection().contains(id)) m_scope.select({id});
    return;
  }
  const FrameItem* frame = m_frames->handleAt(position, FrameLayer::Locked::Included);
  if (frame && !frame->isSelected()) m_frames->select(frame->frame().id);
}

void GraphScene::mouseMoveEvent(QGraphicsSceneMouseEvent* event) {
  if (m_copy) return moveCopy(event->scenePos());
  if (m_draft) {
    updateWire(event->scenePos(), event->screenPos());
    return;
  }
  m_frames->setCarrying(!(event->modifiers() & Qt::AltModifier));
  {
    const QScopedValueRollback guard(m_isMovingTogether, true);
    QGraphicsScene::mouseMoveEvent(event);
  }
  followNodes();
  if (mouseGrabberItem()) previewSplice(event->scenePos(), event->modifiers());
}

void GraphScene::mouseReleaseEvent(QGraphicsSceneMouseEvent* event) {
  if (m_copy) return finishCopy();
  if (m_draft) {
    const bool isClick = QLineF(m_draft->pressedAt, event->scenePos()).length() < kClickTolerancePx;
    if (isClick && !m_draft->isSticky) {
      m_draft->isSticky = true;
      Q_EMIT hint(tr("Click a port to connect it, or press Esc."));
      return;
    }
    dropWire(event->scenePos(), event->screenPos());
    return;
  }
  const std::optional<Edit> spliced = spliceAt(event->scenePos(), event->modifiers());
  setDropTarget(nullptr);
  QGraphicsScene::mouseReleaseEvent(event);
  if (!spliced || !m_scope.apply(*spliced)) commitMoves();
}

void GraphScene::mouseDoubleClickEvent(QGraphicsSceneMouseEvent* event) {
  for (const auto& [id, item] : m_nodes) {
    if (!item->sceneBox().contains(event->scenePos())) continue;
    m_scope.canEnter(id) ? enter(toQt(id)) : Q_EMIT nodeActivated(toQt(id));
    return;
  }
  const FrameItem* frame = m_frames->handleAt(event->scenePos(), FrameLayer::Locked::LeftOut);
  if (frame) return Q_EMIT m_frames->editWanted(toQt(frame->frame().id));
  Q_EMIT emptyDoubleClicked(event->scenePos(), event->screenPos());
}

namespace {

/// Of all basic ops that the op of the document became; none before the graph has them.
std::optional<OperationCost> costAt(const Graph& graph, const std::string& id) {
  std::vector<NodeId> nodes;
  for (NodeId node = 0; node < static_cast<NodeId>(graph.nodes().size()); ++node)
    if (graph.node(node).owner == id) nodes.push_back(node);
  return nodes.empty() ? std::nullopt : std::optional(costOf(graph, nodes));
}

QString tipOf(const CanvasScope& scope, const NodeItem& item, QPointF scenePosition) {
  const NodeLook& look = item.look();
  const DocumentOp* op = scope.document().findOp(look.id);
  const OperationPointer operation = op ? operationOf(scope.document(), *op) : nullptr;
  if (!operation || item.portNear(scenePosition)) return item.tipAt(scenePosition);
  return operationCard(*operation, toQt(look.id), costAt(scope.analysis()->graph(), look.id)) + look.tip;
}

}  // namespace

void GraphScene::helpEvent(QGraphicsSceneHelpEvent* event) {
  QString tip;
  for (const HullItem* hull : m_hulls) {
    if (hull->labelArea().contains(event->scenePos())) tip = hull->look().tip;
  }
  for (const auto& [id, item] : m_nodes) {
    if (item->sceneBoundingRect().contains(event->scenePos())) tip = tipOf(m_scope, *item, event->scenePos());
  }
  if (tip.isEmpty()) return QGraphicsScene::helpEvent(event);  // wires and others have tips of their own
  QToolTip::showText(event->screenPos(), tip);
}

}  // namespace fuseline::ui
