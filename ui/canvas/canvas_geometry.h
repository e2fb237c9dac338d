// Places on the canvas: the grid, and what lies in a direction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <QPointF>

#include <optional>

namespace fuseline::ui {

/// The nearest place on the grid.
Position snappedPosition(QPointF position);

/// Cost of a way in a direction; nullopt if it leads elsewhere. Sideways distance counts twice: an arrow key should
/// follow the row it points along.
std::optional<double> costOfWay(QPointF way, QPointF direction);

}  // namespace fuseline::ui
