// WireRouter: paths of wires around what stands between their ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/layout/box_index.h"

#include <QPainterPath>
#include <QPointF>
#include <QRectF>

#include <optional>
#include <vector>

namespace fuseline::ui {

class WireRouter {
 public:
  /// nodes: boxes that no wire crosses. hulls: outlines that a wire crosses only if it ends inside.
  WireRouter(std::vector<QRectF> nodes, std::vector<QRectF> hulls);

  /// The plain path where nothing is in its way. Otherwise along a free lane above or below, the nearest one; wires
  /// routed before keep theirs. Where no lane is free, the plain path again.
  QPainterPath route(QPointF from, QPointF to);

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

}  // namespace fuseline::ui
