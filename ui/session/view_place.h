// ViewPlace: a part of the canvas that is in sight.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QPointF>

namespace fuseline::ui {

struct ViewPlace {
  QPointF middle;  // in scene coordinates
  double zoom = 1.0;
};

}  // namespace fuseline::ui
