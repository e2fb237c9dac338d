// A drop onto a wire goes into the wire.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/drop_gesture.h"

#include "core/edit/edit_script.h"
#include "ui/canvas/canvas_geometry.h"
#include "ui/canvas/metrics.h"
#include "ui/theme/format.h"

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

// Left above and below an op that is dropped into a wire.
constexpr int kClearancePx = 16;
// The same at its ports: a wire that is long enough for its label.
constexpr int kLeastWirePx = 56;

// How far right of the selected op a drop is still connected to it, and how far above or below its middle.
constexpr double kBesideReachPx = 2.0 * kNodePitchPx;
constexpr double kBesideOffsetPx = kNodeHeightPx;

bool fitsIntoWires(const std::string& entry) { return entry != kInputEntry && entry != kOutputEntry; }

}  // namespace

DropGesture::DropGesture(const CanvasParts& parts) : m_parts(parts) {}

void DropGesture::preview(const std::string& entry, std::optional<QPointF> position) {
  setTarget(position && fitsIntoWires(entry) ? m_parts.items.linkAt(*position) : nullptr);
  setAnchor(position && !m_target ? anchorOf(entry, *position) : std::string());
}

/// How far right of the node an op at this place would be; nothing where the chain does not go on there.
std::optional<double> DropGesture::distanceBeside(const NodeItem& node, QPointF position) {
  const QRectF box = node.sceneBox();
  const double distance = position.x() - kNodeWidthPx / 2.0 - box.right();
  const bool isBeside = !node.look().outputs.empty() && distance >= 0.0 && distance <= kBesideReachPx &&
                        std::abs(position.y() - box.center().y()) <= kBesideOffsetPx;
  return isBeside ? std::optional(distance) : std::nullopt;
}

/// The node that the place is beside: the selected one or, with nothing selected, the nearest that nobody reads.
std::string DropGesture::anchorOf(const std::string& entry, QPointF position) const {
  if (entry == kInputEntry) return {};
  const std::string selected = m_parts.scope.singleSelection().toStdString();
  std::string anchor;
  double nearest = kBesideReachPx + 1.0;
  for (const auto& [id, item] : m_parts.items.nodes()) {
    const std::optional<double> distance = distanceBeside(*item, position);
    if (!distance || *distance >= nearest) continue;
    const bool isWanted = m_parts.scope.selection().isEmpty()
                              ? readersOf(m_parts.scope.document(), {id, item->look().outputs.front().name}).empty()
                              : id == selected;
    if (!isWanted) continue;
    anchor = id;
    nearest = *distance;
  }
  return anchor;
}

void DropGesture::setAnchor(const std::string& anchor) {
  if (anchor == m_anchor) return;
  if (NodeItem* const item = m_parts.items.node(m_anchor)) item->clearMarks();
  m_anchor = anchor;
  if (NodeItem* const item = m_parts.items.node(anchor))
    item->setMark({anchor, item->look().outputs.front().name, true}, PortMark::Target);
  Q_EMIT hint(anchor.empty() ? QString() : tr("Drop to connect the op to %1.").arg(toQt(anchor)));
}

void DropGesture::endPreview() {
  setTarget(nullptr);
  setAnchor({});
}

void DropGesture::forgetTarget() {
  if (m_target) m_target->setDropTarget(false);
  m_target = nullptr;
}

void DropGesture::setTarget(LinkItem* target) {
  if (target == m_target) return;
  if (m_target) m_target->setDropTarget(false);
  m_target = target;
  if (target) target->setDropTarget(true);
  Q_EMIT hint(target ? tr("Drop to insert the op into the wire to %1.").arg(toQt(target->link().to.node)) : QString());
}

/// The selection while it is being moved by one of its ops.
std::set<std::string> DropGesture::draggedOps() const {
  const auto* grabbed = qgraphicsitem_cast<const NodeItem*>(m_parts.scene.mouseGrabberItem());
  if (!grabbed || !m_parts.scope.selection().contains(toQt(grabbed->look().id))) return {};
  std::set<std::string> ids;
  for (const QString& id : m_parts.scope.selection()) ids.insert(id.toStdString());
  return ids;
}

/// The wire under the position, unless it belongs to the chain.
LinkItem* DropGesture::linkUnder(QPointF position, const std::set<std::string>& chain) const {
  const auto isUnder = [&](const LinkItem* item) {
    const Link& link = item->link();
    return !chain.contains(link.from.node) && !chain.contains(link.to.node) && item->shape().contains(position);
  };
  const auto found = std::ranges::find_if(m_parts.items.links(), isUnder);
  return found == m_parts.items.links().end() ? nullptr : *found;
}

std::optional<Edit> DropGesture::spliceAt(QPointF position, Qt::KeyboardModifiers modifiers) const {
  const std::set<std::string> ids = draggedOps();
  const LinkItem* target = ids.empty() ? nullptr : linkUnder(position, ids);
  if (!target || (modifiers & Qt::AltModifier)) return std::nullopt;
  Places places;
  for (const std::string& id : ids) places[id] = snappedPosition(m_parts.items.node(id)->pos());
  const Room room = roomIn(target->link(), places);
  const Result<Edit> edit = spliceChain(m_parts.scope.document(), ids, target->link(), places, room);
  return edit ? std::optional(*edit) : std::nullopt;
}

void DropGesture::previewSplice(QPointF position, Qt::KeyboardModifiers modifiers) {
  setTarget(spliceAt(position, modifiers) ? linkUnder(position, draggedOps()) : nullptr);
}

/// Whether a node at this place would cover none but these, with room left for wires and their labels.
bool DropGesture::isFree(const Position& place, const std::set<std::string>& except) const {
  const QRectF box(place.x - kLeastWirePx, place.y - kClearancePx, kNodeWidthPx + 2 * kLeastWirePx,
                   kNodeHeightPx + 2 * kClearancePx);
  return std::ranges::none_of(m_parts.items.nodes(), [&](const auto& entry) {
    return !except.contains(entry.first) && entry.second->sceneBox().intersects(box);
  });
}

/// Room for ops dropped on a wire: if there is none, neighbors move, or all nodes are laid out automatically.
Room DropGesture::roomIn(const Link& link, const Places& places) const {
  const auto& given = m_parts.scope.document().positions();
  const auto isPlaced = [&](const std::string& end) {
    return std::ranges::any_of(given, [&](const auto& entry) { return entry.first == end; });
  };
  std::set<std::string> ids;
  for (const auto& [id, place] : places) ids.insert(id);
  const bool isThere = isPlaced(link.from.node) && isPlaced(link.to.node) &&
                       std::ranges::all_of(places, [&](const auto& entry) { return isFree(entry.second, ids); });
  return isThere ? Room::IsThere : Room::IsMade;
}

void DropGesture::drop(const std::string& entry, QPointF position) {
  const std::string anchor = anchorOf(entry, position);
  endPreview();
  const PipelineDocument& document = m_parts.scope.document();
  const Position place = snappedPosition(position - QPointF(kNodeWidthPx / 2.0, kNodeHeightPx / 2.0));
  const LinkItem* target = fitsIntoWires(entry) ? m_parts.items.linkAt(position) : nullptr;
  const bool stays = target && roomIn(target->link(), {{std::string(), place}}) == Room::IsThere;
  const Graph& graph = m_parts.scope.analysis()->documentGraph();
  const NodeEdit added =
      target           ? splice(document, graph, entry, target->link(), stays ? std::optional(place) : std::nullopt)
      : anchor.empty() ? addNode(document, entry, place)
                       : addBeside(document, graph, entry, anchor, place);
  if (m_parts.scope.apply(added.edit)) m_parts.scope.select({toQt(added.id)});
}

}  // namespace fuseline::ui
