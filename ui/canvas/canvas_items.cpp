// Items follow the document; nodes that stay keep their item.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/canvas_items.h"

#include "core/edit/port_values.h"
#include "ui/canvas/blocks/block_inside.h"
#include "ui/canvas/metrics.h"
#include "ui/numerics/quantizer_chip.h"
#include "ui/session/edits.h"
#include "ui/session/large_pipeline.h"
#include "ui/session/last_edits.h"
#include "ui/session/plan_steps.h"
#include "ui/theme/format.h"
#include "ui/widgets/free_places.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace fuseline::ui {

namespace {

void noteDTypes(CanvasItems::Shown& shown, const NodeLook& look) {
  for (const auto* ports : {&look.inputs, &look.outputs})
    for (const PortLook& port : *ports)
      if (port.dtype) shown.dtypes.insert(*port.dtype);
}

/// Every paint of the canvas asks for them.
void noteLegends(CanvasItems::Shown& shown, const CanvasItems::Looks& looks) {
  shown.dtypes.clear();
  shown.hasErrors = std::ranges::any_of(looks, [](const NodeLook* look) { return look->rmsError.has_value(); });
  for (const NodeLook* look : looks) noteDTypes(shown, *look);
}

/// Puts the node there. Whether it stood elsewhere.
bool isMovedTo(NodeItem& item, const Position& place) {
  const QPointF before = item.pos();
  item.setPos(place.x, place.y);
  return item.pos() != before;
}

/// Ports with an error at their wire. An op of several inputs with tensors that do not match is named without a port.
std::set<Endpoint> brokenPorts(const std::vector<Diagnostic>& problems) {
  std::set<Endpoint> ports;
  for (const Diagnostic& problem : problems) {
    const bool isOfAllInputs = problem.code == "shape-mismatch" || problem.code == "dtype-mismatch";
    if (problem.severity == Severity::Error && (isOfAllInputs || !problem.port.empty()))
      ports.insert({problem.node, problem.port});
  }
  return ports;
}

bool isBroken(const Link& link, const std::set<Endpoint>& ports) {
  return ports.contains(link.from) || ports.contains(link.to) || ports.contains({link.to.node, {}});
}

void showBroken(const std::vector<LinkItem*>& links, const std::vector<Diagnostic>& problems) {
  const std::set<Endpoint> ports = brokenPorts(problems);
  for (LinkItem* item : links) item->setBroken(isBroken(item->link(), ports));
}

/// Whether a wire carries another tensor now.
bool showTensors(const std::vector<LinkItem*>& links, const Analysis& analysis) {
  const Graph& graph = analysis.graph();
  const PortValues values(graph, analysis.documentGraph());
  const RankParts parts(analysis);
  const QuantizerChips chips(graph);
  bool isOther = false;
  for (LinkItem* item : links) {
    const Value* value = values.at(item->link().from);
    const QuantizerChip chip = value ? chips.at(*value, item->link()) : QuantizerChip();
    isOther = item->showTensor(value ? std::optional(value->spec) : std::nullopt, chip.text, chip.tip) || isOther;
    const bool isShared = value && analysis.ranks > 1;
    isOther = item->showRanks(isShared ? parts.of(*value) : RankPart(),
                              isShared ? parts.along(item->link(), *value) : std::vector<WireCommunication>()) ||
              isOther;
  }
  return isOther;
}

auto itemKey(const Link& link) { return std::pair(link.from, link.to); }
auto itemKey(const HullLook& look) { return std::pair(look.owners, look.rule); }

/// Items that show these: those of before, and new ones. Most edits change a few: the same ones at both ends stay.
template <class Item, class Shown>
std::vector<Item*> renewed(const std::vector<Item*>& items, const std::vector<Shown>& all,
                           const Shown& (Item::*shownBy)() const, const std::function<Item*(const Shown&)>& make) {
  const auto isShownBy = [&](const Shown& shown, Item* item) { return (item->*shownBy)() == shown; };
  const auto [first, firstItem] = std::ranges::mismatch(all, items, isShownBy);
  const auto [last, lastItem] = std::mismatch(all.rbegin(), std::reverse_iterator(first), items.rbegin(),
                                              std::reverse_iterator(firstItem), isShownBy);
  std::multimap<decltype(itemKey(all.front())), Item*> left;
  for (auto item = firstItem; item != lastItem.base(); ++item) left.emplace(itemKey(((*item)->*shownBy)()), *item);
  std::vector<Item*> after(items.begin(), firstItem);
  for (auto shown = first; shown != last.base(); ++shown) {
    const auto kept = left.find(itemKey(*shown));
    const bool stays = kept != left.end() && isShownBy(*shown, kept->second);
    after.push_back(stays ? kept->second : make(*shown));
    if (stays) left.erase(kept);
  }
  after.insert(after.end(), lastItem.base(), items.end());
  for (const auto& [key, item] : left) delete item;
  return after;
}

/// In a large pipeline everything is placed once, with the plan of the edit, unless something that was there moves.
bool waitsForPlan(const Session& session) { return isLarge(session) && session.plan().isAnalysing(); }

using Nodes = std::map<std::string, NodeItem*>;

/// In the order of the nodes.
std::vector<QRectF> boxesOf(const Nodes& nodes) {
  std::vector<QRectF> boxes;
  for (const auto& [id, item] : nodes) boxes.push_back(item->sceneBox());
  return boxes;
}

/// Around the nodes and hulls as they stand.
WireRouter routerFor(const Nodes& nodes, const std::vector<HullItem*>& hulls) {
  std::vector<QRectF> outlines;
  for (const HullItem* hull : hulls)
    if (hull->isVisible()) outlines.push_back(hull->outlineRect());
  return {boxesOf(nodes), std::move(outlines)};
}

std::optional<QPointF> placeOf(const Nodes& nodes, const PortRef& port) {
  const auto found = nodes.find(port.node);
  return found == nodes.end() ? std::nullopt : found->second->portPosition(port);
}

/// Through its reroute points if it has any: where they are is the user's choice.
void placeLink(LinkItem& item, const Nodes& nodes, const RerouteLayer& reroutes, WireRoutes& wires) {
  const Link& link = item.link();
  const auto start = placeOf(nodes, {link.from.node, link.from.port, true});
  const auto end = placeOf(nodes, {link.to.node, link.to.port, false});
  item.setVisible(start && end);
  if (!start || !end) return;
  std::vector<QPointF> points = reroutes.pointsOf(link);
  if (points.empty()) return item.setRoute(wires.route(&item, *start, *end));
  points.insert(points.begin(), *start);
  points.push_back(*end);
  item.setRoute(pathThrough(points));
}

void placeHull(HullItem& hull, const Nodes& nodes, const std::vector<const NodeItem*>& items, const BoxIndex& index) {
  std::vector<QRectF> boxes;
  std::set<const NodeItem*> owners;
  QRectF around;
  for (const QString& owner : hull.look().owners) {
    const auto found = nodes.find(owner.toStdString());
    if (found == nodes.end()) continue;
    owners.insert(found->second);
    boxes.push_back(found->second->sceneBox());
    around = around.united(boxes.back());
  }
  std::vector<QRectF> others;
  for (const std::size_t near : index.near(around))
    if (!owners.contains(items[near])) others.push_back(index.boxes()[near]);
  hull.setVisible(!boxes.empty());
  hull.setBoxes(boxes, others);
}

/// A label longer than its hull goes on to the right, up to the next node or label, and a gap before it.
void placeHullLabels(const std::vector<HullItem*>& hulls, const BoxIndex& nodes, const BoxIndex& labels) {
  constexpr double kGapPx = 6.0;
  for (HullItem* hull : hulls) {
    const QRectF whole = (hull->isVisible() ? hull->widestLabelArea() : QRectF()).adjusted(0, 0, kGapPx, 0);
    double end = whole.right();
    for (const BoxIndex* index : {&labels, &nodes})
      for (const std::size_t near : index->near(whole)) {
        const QRectF& other = index->boxes()[near];  // its own label does not begin to the right of itself
        if (other.left() > whole.left() && other.intersects(whole)) end = std::min(end, other.left() - kGapPx);
      }
    hull->setLabelEnd(end);
  }
}

/// All boxes and labels that these may touch are in it.
QRectF areaAround(const std::vector<HullItem*>& hulls, const Nodes& nodes) {
  constexpr double kReachPx = 800.0;
  QRectF area;
  for (const HullItem* hull : hulls)
    for (const QString& owner : hull->look().owners)
      if (const auto found = nodes.find(owner.toStdString()); found != nodes.end())
        area = area.united(found->second->sceneBox());
  return area.adjusted(-kReachPx, -kReachPx, kReachPx, kReachPx);
}

/// Some of all hulls.
void placeHulls(const std::vector<HullItem*>& hulls, const std::vector<HullItem*>& all, const Nodes& shown) {
  if (hulls.empty()) return;
  const QRectF area = hulls.size() == all.size() ? QRectF() : areaAround(hulls, shown);
  std::vector<const NodeItem*> items;  // in the order of the index
  std::vector<QRectF> boxesOfItems;
  for (const auto& [id, item] : shown) {
    const QRectF box = item->sceneBox();
    if (!area.isNull() && !area.intersects(box)) continue;
    items.push_back(item);
    boxesOfItems.push_back(box);
  }
  const BoxIndex nodes(std::move(boxesOfItems));
  for (HullItem* hull : hulls) placeHull(*hull, shown, items, nodes);
  std::vector<QRectF> labels;
  for (const HullItem* hull : all) {
    if (hull->isVisible() && (area.isNull() || area.intersects(hull->outlineRect())))
      labels.push_back(hull->wholeLabelArea());
  }
  placeHullLabels(hulls, nodes, BoxIndex(std::move(labels)));
}

bool endsAt(const Link& link, const FewIds& nodes) {
  return nodes.contains(link.from.node) || nodes.contains(link.to.node);
}

/// An item of the scene.
LinkItem* newLink(QGraphicsScene& scene, const Link& link, const Theme& theme, WireLabels labels) {
  auto* item = new LinkItem(link, theme);
  item->setLabels(labels);
  scene.addItem(item);
  return item;
}

HullItem* newHull(QGraphicsScene& scene, HullLook look, const Theme& theme) {
  auto* item = new HullItem(std::move(look), theme);
  scene.addItem(item);
  return item;
}

using Removal = std::function<void(QGraphicsItem*)>;

/// Removes items whose wires are none of these, and leaves those that have no item yet.
void removeOthers(std::vector<LinkItem*>& items, const FewIds& nodes, std::vector<Link>& links, const Removal& remove) {
  std::erase_if(items, [&](LinkItem* item) {
    const bool stays = !endsAt(item->link(), nodes) || std::erase(links, item->link()) > 0;
    if (!stays) remove(item);
    return !stays;
  });
}

/// Labels of wires cover neither nodes, nor labels of hulls, nor each other.
void placeLabels(const std::vector<LinkItem*>& links, const Nodes& nodes, const std::vector<HullItem*>& hulls) {
  FreePlaces places;
  for (const auto& [id, item] : nodes) places.cover(item->sceneBox());
  for (const HullItem* hull : hulls)
    if (hull->isVisible()) places.cover(hull->labelArea());
  for (LinkItem* item : links) item->setLabelPlace(item->isVisible() ? places.take(item->labelPlaces()) : std::nullopt);
}

bool hasOwnerAmong(const HullLook& look, const std::set<QString>& owners) {
  return std::ranges::any_of(look.owners, [&](const QString& owner) { return owners.contains(owner); });
}

/// Hulls with one of these owners make way for others: `added` are the new items among those that are returned.
std::vector<HullItem*> replaced(const std::vector<HullItem*>& hulls, const std::set<QString>& owners,
                                std::vector<HullLook> looks, const std::function<HullItem*(HullLook)>& make,
                                const Removal& remove, std::vector<HullItem*>& added) {
  std::optional<std::size_t> place;
  std::vector<HullItem*> kept;
  for (HullItem* hull : hulls) {
    if (!hasOwnerAmong(hull->look(), owners) || std::erase(looks, hull->look()) > 0) {
      kept.push_back(hull);
      continue;
    }
    if (!place) place = kept.size();
    remove(hull);
  }
  for (HullLook& look : looks) added.push_back(make(std::move(look)));
  kept.insert(kept.begin() + static_cast<std::ptrdiff_t>(place.value_or(kept.size())), added.begin(), added.end());
  return kept;
}

std::vector<HullItem*> hullsOf(const std::vector<HullItem*>& hulls, const std::set<QString>& owners) {
  std::vector<HullItem*> found;
  if (!owners.empty())
    std::ranges::copy_if(hulls, std::back_inserter(found),
                         [&](const HullItem* hull) { return hasOwnerAmong(hull->look(), owners); });
  return found;
}

std::vector<Link> linksAt(const PipelineDocument& document, const FewIds& nodes) {
  std::vector<Link> links;
  for (const Wire& wire : document.wires())
    if (nodes.contains(wire.from.node) || nodes.contains(wire.to.node)) links.push_back({wire.from, wire.to});
  for (const DocumentOutput& output : document.outputs())
    if (!output.from.node.empty() && (nodes.contains(output.from.node) || nodes.contains(output.id)))
      links.push_back({output.from, {output.id, {}}, true});
  return links;
}

}  // namespace

CanvasItems::CanvasItems(QGraphicsScene& scene, Session& session, const CanvasScope& scope, const Theme& theme)
    : m_scene(scene),
      m_session(session),
      m_scope(scope),
      m_theme(theme),
      m_places(scope),
      m_reroutes(std::make_unique<RerouteLayer>(scene, scope, theme)) {
  connect(m_reroutes.get(), &RerouteLayer::moved, this, [this] {
    for (LinkItem* item : m_links)
      if (!m_reroutes->pointsOf(item->link()).empty()) placeLink(*item, m_nodes, *m_reroutes, m_wires);
  });
  connect(&session.runner(), &Runner::finished, this, [this] {
    m_hullsOf = {};  // the figures on their labels are others
    syncHulls();
  });
  connect(&PlanSteps::of(session.plan()), &PlanSteps::canceled, this, [this] {
    if (m_arePlacesOld) followNodes();
  });
}

// ----------------------------------------------------------------------------------------------------------- finding

NodeItem* CanvasItems::node(const std::string& id) const {
  const auto found = m_nodes.find(id);
  return found == m_nodes.end() ? nullptr : found->second;
}

std::string CanvasItems::nodeAt(QPointF position) const {
  const auto found =
      std::ranges::find_if(m_nodes, [&](const auto& entry) { return entry.second->sceneBox().contains(position); });
  return found == m_nodes.end() ? std::string() : found->first;
}

LinkItem* CanvasItems::linkAt(QPointF position) const {
  for (LinkItem* link : m_links) {
    if (link->shape().contains(position)) return link;
  }
  return nullptr;
}

const HullItem* CanvasItems::hullAt(QPointF position) const {
  const auto hit =
      std::ranges::find_if(m_hulls, [&](const HullItem* hull) { return hull->labelArea().contains(position); });
  return hit == m_hulls.end() ? nullptr : *hit;
}

std::optional<PortRef> CanvasItems::portNear(QPointF position) const {
  for (const auto& [id, item] : m_nodes) {
    if (const auto port = item->portNear(position)) return port;
  }
  return std::nullopt;
}

QRectF CanvasItems::contentRect() const {
  QRectF rect;
  for (const auto& [id, item] : m_nodes) rect = rect.united(item->sceneBoundingRect());
  for (const HullItem* hull : m_hulls) rect = rect.united(hull->sceneBoundingRect());
  for (const BorderItem* border : m_borders) rect = rect.united(border->sceneBoundingRect());
  return rect;
}

QRectF CanvasItems::wiresRect() const {
  QRectF rect;
  for (const LinkItem* link : m_links)
    if (link->isVisible()) rect = rect.united(link->sceneBoundingRect());
  return rect;
}

std::vector<std::string> CanvasItems::selectedNodes() const {
  std::vector<std::string> ids;
  for (const auto& [id, item] : m_nodes)
    if (item->isSelected()) ids.push_back(id);
  return ids;
}

std::vector<Link> CanvasItems::selectedWires() const {
  std::vector<Link> links;
  for (const LinkItem* item : m_links)
    if (item->isSelected()) links.push_back(item->link());
  return links;
}

// ---------------------------------------------------------------------------------------------------------- syncing

/// Routes, labels and outlines are computed again where something moved: most edits change the look of a node only.
void CanvasItems::sync(const Looks& looks, const std::function<bool(const NodeItem&)>& isInHand) {
  noteLegends(m_shown, looks);
  m_addedNodes.clear();
  const bool haveNodesChanged = syncNodes(looks);
  const bool haveLinksChanged = syncLinks();
  m_isStructureNew = m_isStructureNew || haveNodesChanged || haveLinksChanged;
  m_places.sync(looks, std::exchange(m_isStructureNew, false), LastEdits::of(m_session.pipeline()).has_value());
  bool isMoved = false;
  for (const auto& [id, item] : m_nodes)
    if (!isInHand(*item)) isMoved = (isMovedTo(*item, m_places.of(id)) && !m_addedNodes.contains(item)) || isMoved;
  isMoved = m_reroutes->sync(m_links) || isMoved;
  const bool haveHullsChanged = syncHullLooks();
  if (haveNodesChanged || isMoved || haveHullsChanged) ++m_shown.revision;
  m_arePlacesOld = m_arePlacesOld || haveNodesChanged || haveLinksChanged || isMoved || haveHullsChanged;
  if (m_arePlacesOld && (isMoved || !waitsForPlan(m_session))) placeAll();
  if (m_arePlacesOld)
    for (LinkItem* item : m_links)
      if (item->path().isEmpty()) placeLink(*item, m_nodes, *m_reroutes, m_wires);
  syncBorders();
}

void CanvasItems::placeAll() {
  m_retired.deleteAll();
  placeHulls(m_hulls, m_hulls, m_nodes);
  placeLinks();
  m_arePlacesOld = false;
}

bool CanvasItems::syncOnly(const std::vector<NodeLook>& looks) {
  const auto hasSamePorts = [this](const NodeLook& look) {
    const NodeItem* item = node(look.id);
    return item && item->look().inputs == look.inputs && item->look().outputs == look.outputs &&
           item->look().size() == look.size();
  };
  if (m_arePlacesOld || !std::ranges::all_of(looks, hasSamePorts)) return false;
  for (const NodeLook& look : looks)
    if (node(look.id)->setLook(look)) ++m_shown.revision;
  m_tensorsOf = m_scope.analysis();
  m_hullsOf.analysis = m_session.plan().analysis();
  return true;
}

/// Fusions of ops that are gone are gone; the others stay until those around the edit are known.
bool CanvasItems::syncEdited(const FewIds& nodes, const std::vector<NodeLook>& looks) {
  const bool isFollowed = m_scene.mouseGrabberItem() == nullptr && !m_isStructureNew && waitsForPlan(m_session);
  if (!isFollowed || !m_places.follow(nodes, looks)) return false;
  m_addedNodes.clear();
  const Removal remove = [this](QGraphicsItem* item) { m_retired.add(item); };
  std::set<QString> movedNodes;
  for (const NodeLook& look : looks) {
    noteDTypes(m_shown, look);
    NodeItem*& item = m_nodes[look.id];
    if (!item) {
      item = new NodeItem(look, m_theme);
      m_scene.addItem(item);
      m_nodesInOrder.push_back(item);  // the next sync() puts it in its place
    }
    item->setLook(look);
    if (isMovedTo(*item, m_places.of(look.id))) movedNodes.insert(toQt(look.id));
  }
  std::set<QString> gone;
  for (const std::string& id : nodes.all()) {
    if (std::ranges::find(looks, id, &NodeLook::id) != looks.end()) continue;
    gone.insert(toQt(id));
    if (const auto found = m_nodes.find(id); found != m_nodes.end()) {
      std::erase(m_nodesInOrder, found->second);
      remove(found->second);
      m_nodes.erase(found);
    }
  }
  std::vector<Link> links = linksAt(m_scope.document(), nodes);
  removeOthers(m_links, nodes, links, remove);
  for (const Link& link : links) m_links.push_back(newLink(m_scene, link, m_theme, m_wireLabels));
  m_reroutes->sync(m_links);
  for (LinkItem* item : m_links)  // around the others as they stood before
    if (endsAt(item->link(), nodes)) placeLink(*item, m_nodes, *m_reroutes, m_wires);
  std::vector<HullItem*> none;
  m_hulls = replaced(m_hulls, gone, {}, {}, remove, none);
  placeHulls(hullsOf(m_hulls, movedNodes), m_hulls, m_nodes);
  m_hullsOf = {};
  ++m_shown.revision;
  m_arePlacesOld = true;
  return true;
}

void CanvasItems::showNeighborhood(const Neighborhood& part, const std::vector<NodeLook>& looks) {
  for (const NodeLook& look : looks)
    if (NodeItem* const item = node(look.id)) item->setLook(look);
  std::set<QString> owners;
  for (const std::string& id : part.ops) owners.insert(toQt(id));
  auto hulls = hullLooksOf(part.window, m_session, m_scope, m_hullFilter, m_areSpeedupsVisible);
  std::erase_if(hulls, [&](const HullLook& look) { return !hasOwnerAmong(look, owners); });
  std::vector<HullItem*> added;
  const auto make = [this](HullLook look) { return newHull(m_scene, std::move(look), m_theme); };
  m_hulls = replaced(
      m_hulls, owners, std::move(hulls), make, [this](QGraphicsItem* item) { m_retired.add(item); }, added);
  m_hullsOf = {};
  placeHulls(added, m_hulls, m_nodes);
  const FewIds nodes(part.ops);
  std::vector<LinkItem*> links;
  std::ranges::copy_if(m_links, std::back_inserter(links),
                       [&](const LinkItem* item) { return nodes.contains(item->link().from.node); });
  showTensors(links, part.window);
  markChosenHull();
  ++m_shown.revision;
}

void CanvasItems::removeNodes() {
  replaceNodes({});
  m_isStructureNew = true;
}

bool CanvasItems::syncNodes(const Looks& looks) {
  const auto isShownBy = [](const NodeLook* look, const NodeItem* item) { return item->look().id == look->id; };
  if (!std::ranges::equal(looks, m_nodesInOrder, isShownBy)) {
    replaceNodes(looks);
    return true;
  }
  bool isResized = false;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (looks[i] == &m_nodesInOrder[i]->look()) continue;
    isResized = isResized || looks[i]->size() != m_nodesInOrder[i]->look().size();
    if (m_nodesInOrder[i]->setLook(*looks[i])) ++m_shown.revision;
  }
  return isResized;
}

void CanvasItems::replaceNodes(const Looks& looks) {
  std::map<std::string, NodeItem*> kept;
  m_nodesInOrder.clear();
  for (const NodeLook* look : looks) {
    NodeItem* item = node(look->id);
    if (!item) {
      item = new NodeItem(*look, m_theme);
      m_scene.addItem(item);
      m_addedNodes.insert(item);
    } else if (look != &item->look()) {
      item->setLook(*look);
    }
    kept[item->look().id] = item;
    m_nodesInOrder.push_back(item);
  }
  for (const auto& [id, item] : m_nodes) {
    if (!kept.contains(id)) delete item;
  }
  m_nodes = std::move(kept);
}

bool CanvasItems::syncLinks() {
  const std::vector<Link> links = linksOf(m_scope.document());
  const bool isOther = !std::ranges::equal(links, m_links, {}, {}, &LinkItem::link);
  const bool isSameAnalysis = m_tensorsOf == m_scope.analysis();
  std::vector<LinkItem*> added;
  if (isOther)
    m_links = renewed<LinkItem, Link>(m_links, links, &LinkItem::link, [&](const Link& link) {
      added.push_back(newLink(m_scene, link, m_theme, m_wireLabels));
      return added.back();
    });
  if (!isOther && isSameAnalysis) return false;
  m_tensorsOf = m_scope.analysis();
  const std::vector<LinkItem*>& shown = isSameAnalysis ? added : m_links;  // others carry what they carried
  const std::vector<Diagnostic> none;
  showBroken(shown, m_scope.isInside() ? none : m_tensorsOf->lowered.diagnostics);
  return showTensors(shown, *m_tensorsOf) || isOther;
}

void CanvasItems::syncHulls() {
  if (syncHullLooks()) placeHulls(m_hulls, m_hulls, m_nodes);
  markChosenHull();
}

bool CanvasItems::syncHullLooks() {
  HullSource source = hullSource(m_session, m_scope, m_hullFilter, m_areSpeedupsVisible);
  if (source == m_hullsOf) return false;
  m_hullsOf = std::move(source);
  const std::vector<HullLook> looks = hullLooks(m_session, m_scope, m_hullFilter, m_areSpeedupsVisible);
  const bool isOther = !std::ranges::equal(looks, m_hulls, {}, {}, &HullItem::look);
  if (isOther)
    m_hulls = renewed<HullItem, HullLook>(m_hulls, looks, &HullItem::look,
                                          [this](const HullLook& look) { return newHull(m_scene, look, m_theme); });
  markChosenHull();
  return isOther;
}

void CanvasItems::syncBorders() {
  qDeleteAll(m_borders);
  m_borders.clear();
  for (FuserBorder& border : fuserBorders(m_scope.analysis()->graph())) {
    m_borders.push_back(new BorderItem(std::move(border), m_theme));
    m_scene.addItem(m_borders.back());
  }
  placeBorders();
}

void CanvasItems::followNodes() {
  placeAll();
  placeBorders();
}

void CanvasItems::placeLinks() {
  m_wires.restart(routerFor(m_nodes, m_hulls));
  for (LinkItem* item : m_links) placeLink(*item, m_nodes, *m_reroutes, m_wires);
  placeLabels(m_links, m_nodes, m_hulls);
}

/// Across the middle of the first wire between the two ops.
void CanvasItems::placeBorders() {
  std::map<std::pair<std::string, std::string>, const LinkItem*> between;
  if (!m_borders.empty())
    for (const LinkItem* link : m_links) between.try_emplace({link->link().from.node, link->link().to.node}, link);
  for (BorderItem* item : m_borders) {
    const auto found = between.find({item->border().from, item->border().to});
    item->setVisible(found != between.end() && found->second->isVisible());
    if (item->isVisible()) item->setPos(found->second->path().pointAtPercent(0.5));
  }
}

void CanvasItems::markChosenHull() {
  const QSet<QString>& ids = m_scope.selection();
  for (HullItem* hull : m_hulls) {
    const QStringList& owners = hull->look().owners;
    hull->setChosen(hull->look().rule == m_session.selection().rule() &&
                    ids == QSet<QString>(owners.begin(), owners.end()));
  }
}

// ----------------------------------------------------------------------------------------------------------- choices

void CanvasItems::setHullFilter(HullFilter filter) {
  m_hullFilter = filter;
  syncHulls();
  placeLinks();
}

void CanvasItems::setSpeedupsVisible(bool visible) {
  m_areSpeedupsVisible = visible;
  syncHulls();
}

void CanvasItems::setWireLabels(WireLabels labels) {
  m_wireLabels = labels;
  for (LinkItem* item : m_links) item->setLabels(labels);
  placeLabels(m_links, m_nodes, m_hulls);
}

}  // namespace fuseline::ui
