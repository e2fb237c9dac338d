// FrameEditing: the field for the title or the text of a frame, in its place on the canvas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_camera.h"
#include "ui/canvas/frame_editor.h"

#include <QObject>
#include <QPointer>

#include <string>

namespace fuseline::ui {

class FrameEditing : public QObject {
  Q_OBJECT

 public:
  /// All of them live as long as this.
  FrameEditing(QGraphicsView& view, GraphScene& scene, CanvasCamera& camera, const Session& session);

  /// Opens it. A field that is open is ended by the keyboard that the next one takes.
  void edit(const QString& id);

 private:
  void place();
  void close();

  QGraphicsView& m_view;
  GraphScene& m_scene;
  CanvasCamera& m_camera;
  QPointer<FrameEditor> m_editor;
  std::string m_edited;  // the frame that it is in
};

}  // namespace fuseline::ui
