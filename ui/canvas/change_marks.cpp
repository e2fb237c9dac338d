// Hangs marks on the items of the canvas, and places what is gone.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/change_marks.h"

#include "ui/canvas/change_badge.h"
#include "ui/canvas/metrics.h"
#include "ui/canvas/node_moves.h"
#include "ui/changes/changes_model.h"
#include "ui/theme/format.h"

#include <QStyleOptionGraphicsItem>

#include <algorithm>
#include <set>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kOutlinePx = 3.0;
constexpr double kMarkMarginPx = 18.0;
// Unchanged items are faded, but still legible.
constexpr double kUnchangedOpacity = 0.55;
constexpr double kMarkClearancePx = 12.0;
constexpr int kMostRowsAway = 8;
// Position of a wire's badge as a share of its length, clear of the port and of the shape label in the middle.
constexpr double kBadgeShare = 0.2;

NodeMark* markOn(const QGraphicsItem& item) {
  for (QGraphicsItem* child : item.childItems())
    if (child->type() == NodeMark::Type) return static_cast<NodeMark*>(child);
  return nullptr;
}

/// On a wire that only this pipeline has.
class NewLinkMark : public QGraphicsItem {
 public:
  NewLinkMark(LinkItem& link, DocumentChange::Kind kind, const Theme& theme)
      : QGraphicsItem(&link), m_link(link), m_kind(kind), m_theme(theme) {
    setAcceptedMouseButtons(Qt::NoButton);
  }
  QRectF boundingRect() const override { return m_link.boundingRect(); }
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override {
    QColor glow = changeColor(m_theme.colors(), m_kind);
    glow.setAlpha(80);
    painter->setRenderHint(QPainter::Antialiasing);
    painter->strokePath(m_link.path(), QPen(glow, 8.0, Qt::SolidLine, Qt::RoundCap));
    paintSmallChangeBadge(*painter, m_link.path().pointAtPercent(kBadgeShare), m_kind, m_theme);
  }

 private:
  LinkItem& m_link;
  const DocumentChange::Kind m_kind;
  const Theme& m_theme;
};

/// A wire that only the other pipeline has: dashed, with a badge where both of its ends are still there.
class GoneLink : public QGraphicsPathItem {
 public:
  GoneLink(const QPainterPath& path, std::optional<DocumentChange::Kind> badge, const Theme& theme)
      : QGraphicsPathItem(path), m_theme(theme), m_badge(badge) {
    setZValue(4);
    setAcceptedMouseButtons(Qt::NoButton);
  }
  QRectF boundingRect() const override { return path().boundingRect().adjusted(-10, -10, 10, 10); }
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override {
    QPen pen(m_theme.colors().dimText, 1.6);
    pen.setDashPattern({2.5, 3.0});
    painter->setRenderHint(QPainter::Antialiasing);
    painter->strokePath(path(), pen);
    if (m_badge) paintSmallChangeBadge(*painter, path().pointAtPercent(kBadgeShare), *m_badge, m_theme);
  }

 private:
  const Theme& m_theme;
  std::optional<DocumentChange::Kind> m_badge;
};

bool runsThrough(const LinkItem& link, const QRectF& area) {
  return link.isVisible() && link.path().boundingRect().adjusted(-1, -1, 1, 1).intersects(area) &&
         link.shape().intersects(area);
}

QPointF pointOf(const Position& position) { return QPointF(position.x, position.y); }

}  // namespace

// ---------------------------------------------------------------------------------------------------------- node marks

namespace {

/// Behind the node, so that what the node itself has at its edges stays whole.
class NodeOutline : public QGraphicsItem {
 public:
  NodeOutline(NodeItem& node, const NodeMark& mark, const Theme& theme)
      : QGraphicsItem(&node), m_node(node), m_mark(mark), m_theme(theme) {
    setFlag(ItemStacksBehindParent);
    setAcceptedMouseButtons(Qt::NoButton);
  }
  QRectF boundingRect() const override { return m_mark.boundingRect(); }
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override {
    const QRectF box = m_mark.box();
    const bool isOp = m_node.look().kind == NodeKind::Op;
    const double radius = (isOp ? kNodeCornerPx : box.height() / 2) + kOutlinePx;
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(QPen(changeColor(m_theme.colors(), m_mark.kind()), 2.4));
    painter->setBrush(Qt::NoBrush);
    painter->drawRoundedRect(box.adjusted(-kOutlinePx, -kOutlinePx, kOutlinePx, kOutlinePx), radius, radius);
  }

 private:
  const NodeItem& m_node;
  const NodeMark& m_mark;
  const Theme& m_theme;
};

}  // namespace

NodeMark::NodeMark(NodeItem& node, const Theme& theme) : QGraphicsItem(&node), m_node(node), m_theme(theme) {
  setAcceptedMouseButtons(Qt::NoButton);
}

void NodeMark::setKind(DocumentChange::Kind kind) {
  prepareGeometryChange();  // the node may have more ports than before
  m_kind = kind;
  update();
}

QRectF NodeMark::box() const { return m_node.mapRectFromScene(m_node.sceneBox()); }

QRectF NodeMark::boundingRect() const {
  return box().adjusted(-kMarkMarginPx, -kMarkMarginPx, kMarkMarginPx, kMarkMarginPx);
}

void NodeMark::paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget*) {
  const bool isFar = option->levelOfDetailFromTransform(painter->worldTransform()) < kFarZoom;
  painter->setRenderHint(QPainter::Antialiasing);
  paintChangeBadge(*painter, box(), m_kind, m_theme, isFar);
}

// -------------------------------------------------------------------------------------------------------------- canvas

ChangeMarks::ChangeMarks(GraphScene& scene, const PipelineComparison& comparison, const Theme& theme, ComparedSide side,
                         QObject* parent)
    : QObject(parent),
      m_scene(scene),
      m_comparison(comparison),
      m_theme(theme),
      m_side(side),
      m_shown(comparison.result()) {
  connect(&comparison, &PipelineComparison::changed, this, &ChangeMarks::refresh);
  connect(&scene, &GraphScene::itemsChanged, this, [this] {
    if (m_comparison.isOn()) refresh();
  });
  m_afterDrag.setSingleShot(true);
  m_afterDrag.setInterval(0);
  connect(&m_afterDrag, &QTimer::timeout, this, &ChangeMarks::refresh);
  connect(&scene.moves(), &NodeMoves::dragged, this, [this] {
    if (m_comparison.isOn()) m_afterDrag.start();
  });
}

const NodeMark* ChangeMarks::markOf(const std::string& id) const {
  const NodeItem* node = m_scene.node(id);
  return node ? markOn(*node) : nullptr;
}

void ChangeMarks::refresh() {
  // Comparisons are about the pipeline: inside of a block nothing is marked.
  const auto result = m_scene.scope().isInside() ? std::make_shared<const ComparisonResult>() : m_comparison.result();
  const bool isAnother = m_shown != result;
  m_shown = result;
  if (isAnother) clearGhosts();
  markNodes();
  markLinks();
  placeGhosts();
  placeGoneLinks();
  QRectF around;
  for (const auto& [id, ghost] : m_ghosts) around = around.united(ghost->sceneBoundingRect());
  m_scene.setSurroundings(around);
}

/// From the base to the new pipeline.
DocumentChange::Kind ChangeMarks::inOrder(DocumentChange::Kind kind) const {
  using Kind = DocumentChange::Kind;
  if (m_side == ComparedSide::New) return kind;
  return kind == Kind::Added ? Kind::Removed : kind == Kind::Removed ? Kind::Added : kind;
}

void ChangeMarks::markNodes() {
  const auto& marks = m_shown->map.marks;
  const bool hasResult = m_comparison.isOn() && !m_shown->difference.changes.empty();
  for (const auto& [id, node] : m_scene.nodes()) {
    const auto found = marks.find(id);
    NodeMark* mark = markOn(*node);
    node->setOpacity(hasResult && found == marks.end() ? kUnchangedOpacity : 1.0);
    if (found == marks.end()) {
      qDeleteAll(node->childItems());  // marks, and nothing else
      continue;
    }
    if (!mark) {
      mark = new NodeMark(*node, m_theme);
      new NodeOutline(*node, *mark, m_theme);
    }
    mark->setKind(inOrder(found->second.kind));
  }
}

void ChangeMarks::markLinks() {
  std::set<std::pair<Endpoint, Endpoint>> isNew;
  for (const Wire& wire : m_shown->map.newLinks) isNew.emplace(wire.from, wire.to);
  const bool hasResult = m_comparison.isOn() && !m_shown->difference.changes.empty();
  for (LinkItem* link : m_scene.links()) {
    const bool isMarked = isNew.contains({link->link().from, link->link().to});
    link->setOpacity(hasResult && !isMarked ? kUnchangedOpacity : 1.0);
    if (!isMarked)
      qDeleteAll(link->childItems());
    else if (link->childItems().isEmpty())
      new NewLinkMark(*link, inOrder(DocumentChange::Kind::Added), m_theme);
  }
}

void ChangeMarks::clearGhosts() {
  for (const auto& [id, ghost] : m_ghosts) delete ghost;
  m_ghosts.clear();
}

void ChangeMarks::placeGhosts() {
  if (m_ghosts.empty() && !m_shown->map.ghosts.empty()) {
    for (NodeLook& look : nodeLooks(*m_shown->base, *m_shown->baseAnalysis, {})) {
      const auto ghost = std::ranges::find(m_shown->map.ghosts, look.id, &ChangeMap::Ghost::id);
      if (ghost == m_shown->map.ghosts.end() || m_ghosts.contains(look.id)) continue;
      auto* item = new GhostItem(std::move(look), m_theme, static_cast<int>(ghost->change),
                                 inOrder(DocumentChange::Kind::Removed));
      item->setClicked([this, change = item->change()] { Q_EMIT ghostClicked(change); });
      item->setCurrent(item->change() == m_current);
      m_scene.addItem(item);
      m_ghosts[ghost->id] = item;
    }
  }
  for (const auto& [id, item] : m_ghosts) item->setVisible(false);  // not in each other's way before they are placed
  for (const ChangeMap::Ghost& ghost : m_shown->map.ghosts) {
    const auto item = m_ghosts.find(ghost.id);
    if (item == m_ghosts.end()) continue;
    item->second->setPos(freePlace(placeOf(ghost), item->second->look().size()));
    item->second->setVisible(true);
  }
}

/// As the base has it, moved as its neighbor has been moved since.
QPointF ChangeMarks::placeOf(const ChangeMap::Ghost& ghost) {
  const NodePositions& base = basePositions();
  const auto own = base.find(ghost.id);
  const auto neighbour = base.find(ghost.baseNeighbour);
  const NodeItem* now = m_scene.node(ghost.neighbour);
  if (own == base.end()) return now ? now->pos() + QPointF(kNodePitchPx, 0) : QPointF();
  if (!now || neighbour == base.end()) return pointOf(own->second);
  return pointOf(own->second) + now->pos() - pointOf(neighbour->second);
}

/// Where the base says nothing, it is laid out as the canvas would.
const NodePositions& ChangeMarks::basePositions() {
  if (m_positionsOf == m_shown->base) return m_basePositions;
  m_positionsOf = m_shown->base;
  m_basePositions.clear();
  const std::vector<NodeLook> looks = nodeLooks(*m_shown->base, *m_shown->baseAnalysis, {});
  for (const auto& [id, position] : m_shown->base->positions()) m_basePositions[id] = position;
  if (std::ranges::all_of(looks, [&](const NodeLook& look) { return m_basePositions.contains(look.id); }))
    return m_basePositions;
  const NodePositions automatic = autoLayout(*m_shown->base, looks);
  m_basePositions.insert(automatic.begin(), automatic.end());
  return m_basePositions;
}

/// In the row, or in the nearest one where it covers nothing.
QPointF ChangeMarks::freePlace(QPointF wanted, QSizeF size) const {
  const auto isFree = [&](QPointF place) {
    const QRectF area =
        QRectF(place, size).adjusted(-kMarkClearancePx, -kMarkClearancePx, kMarkClearancePx, kMarkClearancePx);
    const auto covers = [&](const NodeItem* item) { return item->isVisible() && item->sceneBox().intersects(area); };
    return std::ranges::none_of(m_scene.nodes(), [&](const auto& entry) { return covers(entry.second); }) &&
           std::ranges::none_of(m_ghosts, [&](const auto& entry) { return covers(entry.second); }) &&
           std::ranges::none_of(m_scene.links(), [&](const LinkItem* link) { return runsThrough(*link, area); });
  };
  if (isFree(wanted)) return wanted;
  for (int rows = 1; rows <= kMostRowsAway; ++rows)
    for (const int side : {1, -1})
      if (const QPointF place = wanted + QPointF(0, side * rows * kRowPitchPx); isFree(place)) return place;
  return wanted;
}

std::optional<QPointF> ChangeMarks::portOf(const ChangeMap::End& end, bool isOutput) const {
  const auto ghost = m_ghosts.find(end.at.node);
  const NodeItem* item = end.isGhost ? (ghost == m_ghosts.end() ? nullptr : ghost->second) : m_scene.node(end.at.node);
  return item ? item->portPosition({end.at.node, end.at.port, isOutput}) : std::nullopt;
}

void ChangeMarks::placeGoneLinks() {
  qDeleteAll(m_goneLinks);
  m_goneLinks.clear();
  for (const ChangeMap::Gone& gone : m_shown->map.goneLinks) {
    const auto from = portOf(gone.from, true);
    const auto to = portOf(gone.to, false);
    if (!from || !to) continue;
    const bool hasBadge = !gone.from.isGhost && !gone.to.isGhost;
    auto* item = new GoneLink(wirePath(*from, *to),
                              hasBadge ? std::optional(inOrder(DocumentChange::Kind::Removed)) : std::nullopt, m_theme);
    m_scene.addItem(item);
    m_goneLinks.push_back(item);
  }
}

void ChangeMarks::setCurrent(int change) {
  m_current = change;
  for (const auto& [id, ghost] : m_ghosts) ghost->setCurrent(ghost->change() == change);
}

QRectF ChangeMarks::areaOf(const QStringList& nodes, int change) const {
  QRectF area;
  for (const QString& id : nodes)
    if (const NodeItem* node = m_scene.node(id.toStdString())) area = area.united(node->sceneBoundingRect());
  for (const auto& [id, ghost] : m_ghosts)
    if (ghost->change() == change) area = area.united(ghost->sceneBoundingRect());
  return area;
}

}  // namespace fuseline::ui
