// Reads what the window system calls a zoom gesture.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/pinch.h"

#include <QNativeGestureEvent>

#include <algorithm>

namespace fuseline::ui {

/// Window systems tell by what share of the size the fingers have moved since the last step.
std::optional<Pinch> pinchIn(const QEvent& event) {
  constexpr double kLeastFactor = 0.1;
  if (event.type() != QEvent::NativeGesture) return std::nullopt;
  const auto& gesture = static_cast<const QNativeGestureEvent&>(event);
  if (gesture.gestureType() != Qt::ZoomNativeGesture) return std::nullopt;
  return Pinch{gesture.position(), std::max(kLeastFactor, 1.0 + gesture.value())};
}

}  // namespace fuseline::ui
