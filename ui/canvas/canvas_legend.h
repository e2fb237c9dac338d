// Texts over the canvas: an invitation on an empty one, and the legend of colors and shapes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_scene.h"
#include "ui/theme/theme.h"

#include <QPainter>
#include <QRect>

namespace fuseline::ui {

/// area: of the view, in its own coordinates, which the painter has.
void paintLegends(QPainter& painter, const QRect& area, const GraphScene& scene, const Theme& theme);

}  // namespace fuseline::ui
