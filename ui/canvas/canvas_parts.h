// CanvasParts: what the gestures and commands of the canvas work with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_items.h"
#include "ui/canvas/canvas_scope.h"
#include "ui/canvas/frame_layer.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QGraphicsScene>

namespace fuseline::ui {

/// All parts outlive the owner of this.
struct CanvasParts {
  QGraphicsScene& scene;  // takes items of a gesture's own
  Session& session;
  CanvasScope& scope;
  const Theme& theme;
  CanvasItems& items;
  FrameLayer& frames;
};

}  // namespace fuseline::ui
