// Pinch: two fingers on a touchpad that move apart or together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QEvent>
#include <QPointF>

#include <optional>

namespace fuseline::ui {

struct Pinch {
  QPointF position;     // in the widget
  double factor = 1.0;  // by how much to zoom
};

/// Nothing: the event is no step of a pinch.
std::optional<Pinch> pinchIn(const QEvent& event);

}  // namespace fuseline::ui
