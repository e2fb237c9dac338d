// Tries lanes beside the obstacles, from the nearest one on.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/wire_route.h"

#include "ui/canvas/link_item.h"

#include <QPolygonF>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kClearPx = 5.0;  // between a wire and a box that it passes
constexpr double kNearPx = 20.0;  // from a box to a lane beside it
constexpr double kFarPx = 50.0;   // the same with room for a hull and its label
constexpr double kStepPx = 12.0;  // between lanes of several wires
constexpr int kMostSteps = 8;
constexpr double kEndMarginPx = kWireStubPx + kClearPx;
// How far above and below its ends a wire looks for a lane: first near them, and then far.
constexpr double kFirstReachPx = 1000.0;
constexpr double kLastReachPx = 16'000.0;
constexpr double kReachGrowth = 4.0;

/// Whether a line from `a` to `b` has a point in the box (Liang and Barsky's clipping).
bool meets(QPointF a, QPointF b, const QRectF& box) {
  const QPointF way = b - a;
  double first = 0.0;
  double last = 1.0;
  const auto clip = [&](double step, double room) {
    if (step == 0.0) return room >= 0.0;
    const double at = room / step;
    step < 0.0 ? first = std::max(first, at) : last = std::min(last, at);
    return first <= last;
  };
  return clip(-way.x(), a.x() - box.left()) && clip(way.x(), box.right() - a.x()) &&
         clip(-way.y(), a.y() - box.top()) && clip(way.y(), box.bottom() - a.y());
}

bool runsThrough(const QPolygonF& line, const QRectF& box) {
  for (qsizetype i = 1; i < line.size(); ++i)
    if (meets(line[i - 1], line[i], box)) return true;
  return false;
}

/// By the path as a line, not the area that it encloses.
bool isHit(const QPainterPath& path, const std::vector<QRectF>& obstacles) {
  const QRectF bounds = path.controlPointRect().adjusted(-1, -1, 1, 1);
  const auto isNear = [&](const QRectF& box) { return bounds.intersects(box); };
  if (std::ranges::none_of(obstacles, isNear)) return false;
  const QList<QPolygonF> lines = path.toSubpathPolygons();
  return std::ranges::any_of(obstacles, [&](const QRectF& box) {
    return isNear(box) && std::ranges::any_of(lines, [&](const QPolygonF& line) { return runsThrough(line, box); });
  });
}

}  // namespace

WireRouter::WireRouter(std::vector<QRectF> nodes, std::vector<QRectF> hulls)
    : m_nodes(std::move(nodes)), m_hulls(std::move(hulls)) {}

/// Boxes at the ends shrink, so that the wire may touch them and not run through.
std::vector<QRectF> WireRouter::obstaclesIn(const QRectF& area, QPointF from, QPointF to) const {
  const auto isEndIn = [&](const QRectF& box) { return box.contains(from) || box.contains(to); };
  std::vector<QRectF> obstacles;
  for (const std::size_t near : m_nodes.near(area)) {
    const QRectF& box = m_nodes.boxes()[near];
    const double by = isEndIn(box.adjusted(-1, -1, 1, 1)) ? -3.0 : kClearPx;
    obstacles.push_back(box.adjusted(-by, -by, by, by));
  }
  for (const std::size_t near : m_hulls.near(area))
    if (const QRectF& hull = m_hulls.boxes()[near]; !isEndIn(hull)) obstacles.push_back(hull);
  return obstacles;
}

bool WireRouter::isTaken(const Lane& lane) const {
  return std::ranges::any_of(m_lanes, [&](const Lane& other) {
    return std::abs(other.y - lane.y) < kStepPx - 1 && other.left < lane.right && lane.left < other.right;
  });
}

std::optional<double> WireRouter::freeLane(QPointF from, QPointF to, const std::vector<QRectF>& obstacles) const {
  std::vector<std::pair<double, double>> candidates;  // y, and the direction away from the obstacle
  for (const QRectF& box : obstacles)
    for (const double away : {kNearPx, kFarPx}) {
      candidates.emplace_back(box.top() - away, -1.0);
      candidates.emplace_back(box.bottom() + away, 1.0);
    }
  const double middle = (from.y() + to.y()) / 2;
  std::ranges::sort(candidates, {}, [&](const auto& candidate) { return std::abs(candidate.first - middle); });
  for (const auto& [y, direction] : candidates)
    for (int step = 0; step < kMostSteps; ++step) {
      const double lane = y + direction * step * kStepPx;
      if (isTaken({lane, std::min(from.x(), to.x()), std::max(from.x(), to.x())})) continue;
      if (!isHit(lanePath(from, to, lane), obstacles)) return lane;
      break;
    }
  return std::nullopt;
}

WireRouter::Route WireRouter::route(QPointF from, QPointF to) {
  QPainterPath plain = wirePath(from, to);
  const QRectF ends = QRectF(from, to).normalized();
  if (ends.height() > kLastReachPx) return {std::move(plain), std::nullopt};  // thousands of boxes may lie beside it
  const QRectF around =
      plain.controlPointRect().united(ends).adjusted(-kEndMarginPx, -kEndMarginPx, kEndMarginPx, kEndMarginPx);
  if (!isHit(plain, obstaclesIn(around, from, to))) return {std::move(plain), around};
  std::optional<double> lane;
  for (double reach = kFirstReachPx; !lane && reach <= kLastReachPx; reach *= kReachGrowth)
    lane = freeLane(from, to, obstaclesIn(ends.adjusted(-kEndMarginPx, -reach, kEndMarginPx, reach), from, to));
  if (!lane) return {std::move(plain), std::nullopt};
  m_lanes.push_back({*lane, std::min(from.x(), to.x()), std::max(from.x(), to.x())});
  return {lanePath(from, to, *lane), std::nullopt};
}

std::vector<QRectF> WireRouter::differences(const WireRouter& a, const WireRouter& b) {
  const auto isBefore = [](const QRectF& one, const QRectF& other) {
    const auto key = [](const QRectF& box) { return std::tuple(box.x(), box.y(), box.width(), box.height()); };
    return key(one) < key(other);
  };
  std::vector<QRectF> differences;
  for (BoxIndex WireRouter::*const index : {&WireRouter::m_nodes, &WireRouter::m_hulls}) {
    std::vector<QRectF> ofA = (a.*index).boxes();
    std::vector<QRectF> ofB = (b.*index).boxes();
    std::ranges::sort(ofA, isBefore);
    std::ranges::sort(ofB, isBefore);
    std::ranges::set_symmetric_difference(ofA, ofB, std::back_inserter(differences), isBefore);
  }
  return differences;
}

void WireRoutes::restart(WireRouter router) {
  m_changed = BoxIndex(WireRouter::differences(m_router, router));
  m_router = std::move(router);
  std::erase_if(m_known, [this](const auto& entry) { return entry.second.round != m_round; });
  ++m_round;
}

/// Obstacles grow by kClearPx, which the area around a path allows for.
QPainterPath WireRoutes::route(const void* wire, QPointF from, QPointF to) {
  Known& known = m_known[wire];
  const auto isChanged = [&](const QRectF& area) {
    return std::ranges::any_of(m_changed.near(area),
                               [&](std::size_t box) { return m_changed.boxes()[box].intersects(area); });
  };
  const bool isSame = known.from == from && known.to == to;
  if (!isSame || !known.route.free || isChanged(*known.route.free))
    known = {.from = from, .to = to, .route = m_router.route(from, to)};
  known.round = m_round;
  return known.route.path;
}

}  // namespace fuseline::ui
