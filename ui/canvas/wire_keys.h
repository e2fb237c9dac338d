// WireKeys: a wire that is drawn by keys: it stays in sight, and the keyboard goes back to where it was.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_camera.h"

#include <QPointer>
#include <QWidget>

namespace fuseline::ui {

class WireKeys {
 public:
  /// All of them live as long as this.
  WireKeys(QGraphicsView& view, GraphScene& scene, CanvasCamera& camera)
      : m_view(view), m_scene(scene), m_camera(camera) {}

  /// Begins a wire at the selected node, or at its next port; the arrow keys and Enter of the view go on with it.
  void draw();
  void cancel();
  // Each: false where no wire is being drawn.
  bool aim(QPointF direction);
  bool finish();

 private:
  void show();
  void giveKeyboardBack();

  QGraphicsView& m_view;
  GraphScene& m_scene;
  CanvasCamera& m_camera;
  QPointer<QWidget> m_keyboardBefore;  // where it was when a wire was begun elsewhere
};

}  // namespace fuseline::ui
