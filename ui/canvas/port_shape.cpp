// Polygons of about the same area.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/port_shape.h"

#include <QPolygonF>

namespace fuseline::ui {

namespace {

QPainterPath closed(const QPolygonF& corners) {
  QPainterPath path;
  path.addPolygon(corners);
  path.closeSubpath();
  return path;
}

}  // namespace

QPainterPath portShape(std::optional<DType> dtype, QPointF centre, double radius) {
  const double r = radius;
  const auto at = [&](double x, double y) { return centre + QPointF(x, y) * r; };
  if (dtype == DType::F32) return closed(QPolygonF({at(-0.9, -0.9), at(0.9, -0.9), at(0.9, 0.9), at(-0.9, 0.9)}));
  if (dtype == DType::F16) return closed(QPolygonF({at(0, -1.25), at(1.25, 0), at(0, 1.25), at(-1.25, 0)}));
  if (dtype && *dtype != DType::BF16) return closed(QPolygonF({at(-0.9, -1.15), at(1.2, 0), at(-0.9, 1.15)}));
  QPainterPath circle;
  circle.addEllipse(centre, r, r);
  return circle;
}

}  // namespace fuseline::ui
