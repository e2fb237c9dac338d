// Points follow the document; moved ones become edits.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/reroutes/reroute_layer.h"

#include "core/edit/edit_script.h"
#include "ui/canvas/canvas_geometry.h"

#include <QLineF>
#include <QScopedValueRollback>

#include <algorithm>

namespace fuseline::ui {

namespace {

/// How far along the path a place is: number of the nearest sample.
int sampleNear(const QPainterPath& path, QPointF place) {
  constexpr int kSamples = 200;
  int nearest = 0;
  double least = QLineF(path.pointAtPercent(0), place).length();
  for (int sample = 1; sample <= kSamples; ++sample) {
    const double distance = QLineF(path.pointAtPercent(static_cast<double>(sample) / kSamples), place).length();
    if (distance < least) {
      least = distance;
      nearest = sample;
    }
  }
  return nearest;
}

}  // namespace

RerouteLayer::RerouteLayer(QGraphicsScene& scene, const CanvasScope& scope, const Theme& theme)
    : m_scene(scene), m_scope(scope), m_theme(theme) {}

void RerouteLayer::replaceItems(const std::vector<std::string>& ids) {
  qDeleteAll(m_items);
  m_items.clear();
  for (const std::string& id : ids) {
    m_items.push_back(new RerouteItem(id, m_theme, [this] {
      if (!m_isSyncing) Q_EMIT moved();
    }));
    m_scene.addItem(m_items.back());
  }
}

bool RerouteLayer::sync(const std::vector<LinkItem*>& links) {
  const QScopedValueRollback guard(m_isSyncing, true);
  const auto all = reroutesOf(m_scope.document().pipeline());
  if (all.empty() && m_items.empty()) return false;
  std::map<std::string, const LinkItem*> wires;
  for (const LinkItem* link : links) wires.emplace(rerouteKey(link->link()), link);
  std::vector<std::string> ids;
  for (const auto& [key, points] : all)
    if (wires.contains(key))
      for (const Reroute& point : points) ids.push_back(point.id);
  bool isOther = !std::ranges::equal(ids, m_items, {}, {}, &RerouteItem::id);
  if (isOther) replaceItems(ids);
  m_byWire.clear();
  std::size_t next = 0;
  for (const auto& [key, points] : all) {
    if (!wires.contains(key)) continue;
    for (const Reroute& point : points) {
      RerouteItem* item = m_items[next++];
      m_byWire[key].push_back(item);
      item->setVisible(wires[key]->isVisible());
      item->setColor(wires[key]->color());
      const QPointF place(point.position.x, point.position.y);
      if (item == m_scene.mouseGrabberItem() || item->pos() == place) continue;
      item->setPos(place);
      isOther = true;
    }
  }
  return isOther;
}

std::vector<QPointF> RerouteLayer::pointsOf(const Link& link) const {
  std::vector<QPointF> points;
  if (m_byWire.empty()) return points;
  if (const auto found = m_byWire.find(rerouteKey(link)); found != m_byWire.end())
    for (const RerouteItem* item : found->second) points.push_back(item->pos());
  return points;
}

const RerouteItem* RerouteLayer::itemAt(QPointF position) const {
  const auto found = std::ranges::find_if(m_items, [&](const RerouteItem* item) {
    return item->isVisible() && item->shape().contains(item->mapFromScene(position));
  });
  return found == m_items.end() ? nullptr : *found;
}

std::vector<std::string> RerouteLayer::selected() const {
  std::vector<std::string> ids;
  for (const RerouteItem* item : m_items)
    if (item->isSelected()) ids.push_back(item->id());
  return ids;
}

Edit RerouteLayer::addition(const LinkItem& link, QPointF position) const {
  const int here = sampleNear(link.path(), position);
  const std::vector<QPointF> points = pointsOf(link.link());
  const auto before =
      std::ranges::count_if(points, [&](QPointF point) { return sampleNear(link.path(), point) < here; });
  return addReroute(m_scope.closedDocument().pipeline(), link.link(), snappedPosition(position),
                    static_cast<std::size_t>(before));
}

std::vector<Edit> RerouteLayer::moves() const {
  std::vector<Edit> edits;
  for (const RerouteItem* item : m_items) {
    const std::optional<Position> before = positionOf(m_scope.document().pipeline(), item->id());
    if (before && item->pos() != QPointF(before->x, before->y))
      edits.emplace_back(MoveNode{.id = item->id(), .position = snappedPosition(item->pos())});
  }
  return edits;
}

std::vector<Edit> RerouteLayer::removals() const {
  std::vector<Edit> edits;
  for (const std::string& id : selected()) edits.emplace_back(MoveNode{.id = id, .position = std::nullopt});
  return edits;
}

}  // namespace fuseline::ui
