// WireRouter: paths of wires around what stands between their ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  std::vector<QRectF> obstaclesOf(QPointF from, QPointF to) const;
  std::optional<double> freeLane(QPointF from, QPointF to, const std::vector<QRectF>& obstacles) const;
  bool isTaken(const Lane& lane) const;

  std::vector<QRectF> m_nodes;  // by their left edges
  std::vector<QRectF> m_hulls;
  double m_widest = 0.0;
  std::vector<Lane> m_lanes;
};

}  // namespace fuseline::ui
