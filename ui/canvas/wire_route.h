// WireRouter: paths of wires around what stands between their ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/layout/box_index.h"

#include <QPainterPath>
#include <QPointF>
#include <QRectF>

#include <optional>
#include <unordered_map>
#include <vector>

namespace fuseline::ui {

class WireRouter {
 public:
  /// nodes: boxes that no wire crosses. hulls: outlines that a wire crosses only if it ends inside.
  WireRouter(std::vector<QRectF> nodes, std::vector<QRectF> hulls);

  struct Route {
    QPainterPath path;
    std::optional<QRectF> free;  // of a plain path with nothing in its way: the area that was looked at
  };
  /// The plain path where nothing is in its way. Otherwise along a free lane above or below, the nearest one; wires
  /// routed before keep theirs. Where no lane is free, the plain path again.
  Route route(QPointF from, QPointF to);
  /// Boxes of one of the two and not of the other.
  static std::vector<QRectF> differences(const WireRouter& a, const WireRouter& b);

 private:
  struct Lane {
    double y = 0.0;
    double left = 0.0;
    double right = 0.0;
  };
  /// Obstacles of a wire between the two points, those near the area.
  std::vector<QRectF> obstaclesIn(const QRectF& area, QPointF from, QPointF to) const;
  std::optional<double> freeLane(QPointF from, QPointF to, const std::vector<QRectF>& obstacles) const;
  bool isTaken(const Lane& lane) const;

  BoxIndex m_nodes;
  BoxIndex m_hulls;
  std::vector<Lane> m_lanes;
};

/// The same again and again, around boxes of which a few have changed: plain paths apart from these stay as they are.
class WireRoutes {
 public:
  void restart(WireRouter router);
  /// wire: identifies it among those of the restart before.
  QPainterPath route(const void* wire, QPointF from, QPointF to);

 private:
  struct Known {
    QPointF from;
    QPointF to;
    WireRouter::Route route;
    int round = 0;
  };
  WireRouter m_router{{}, {}};
  BoxIndex m_changed{std::vector<QRectF>()};
  std::unordered_map<const void*, Known> m_known;
  int m_round = 0;
};

}  // namespace fuseline::ui
