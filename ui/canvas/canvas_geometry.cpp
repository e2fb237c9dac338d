// Distances and places in whole steps.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/canvas_geometry.h"

#include "ui/canvas/metrics.h"

#include <cmath>

namespace fuseline::ui {

Position snappedPosition(QPointF position) {
  const auto snap = [](double value) { return static_cast<int>(std::lround(value / kGridPx)) * kGridPx; };
  return {snap(position.x()), snap(position.y())};
}

std::optional<double> costOfWay(QPointF way, QPointF direction) {
  const double along = QPointF::dotProduct(way, direction);
  if (along <= 0) return std::nullopt;
  return along + 2 * std::abs(way.x() * direction.y() - way.y() * direction.x());
}

}  // namespace fuseline::ui
