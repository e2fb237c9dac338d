// The field follows its frame as the view moves.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/frame_editing.h"

#include "ui/theme/format.h"

#include <QApplication>
#include <QScrollBar>

namespace fuseline::ui {

namespace {
constexpr QSize kLeastEditorSize(180, 32);
}  // namespace

FrameEditing::FrameEditing(QGraphicsView& view, GraphScene& scene, CanvasCamera& camera, const Session& session)
    : QObject(&view), m_view(view), m_scene(scene), m_camera(camera) {
  connect(&scene.frames(), &FrameLayer::editWanted, this, &FrameEditing::edit);
  connect(&camera, &CanvasCamera::zoomChanged, this, &FrameEditing::place);
  connect(view.horizontalScrollBar(), &QScrollBar::valueChanged, this, &FrameEditing::place);
  connect(view.verticalScrollBar(), &QScrollBar::valueChanged, this, &FrameEditing::place);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &FrameEditing::close);
  connect(&scene.scope(), &CanvasScope::pathChanged, this, &FrameEditing::close);
  connect(&scene.scope(), &CanvasScope::pathAboutToChange, this, [this] {
    if (m_editor) m_editor->commit();
  });
}

void FrameEditing::edit(const QString& id) {
  const FrameItem* item = m_scene.frames().item(id.toStdString());
  if (!item) return;
  m_camera.showArea(item->sceneBox());
  const DocumentFrame& frame = item->frame();
  auto* editor = new FrameEditor(frame.isNote() ? FrameText::Note : FrameText::Title,
                                 toQt(frame.text.value_or(frame.title)), m_view.viewport());
  connect(editor, &FrameEditor::committed, this,
          [this, id](const QString& text) { m_scene.frames().setText(id.toStdString(), text); });
  connect(editor, &FrameEditor::ended, this, [this, editor] {
    if (editor->hasFocus() || !QApplication::focusWidget()) m_view.setFocus();
  });
  m_edited = id.toStdString();
  m_editor = editor;
  place();
  editor->show();
  editor->setFocus();
}

/// Never smaller than can be typed into. A scene that is destroyed leaves its views, whose scroll bars then move again.
void FrameEditing::place() {
  const FrameItem* item = m_editor && m_view.scene() ? m_scene.frames().item(m_edited) : nullptr;
  if (!item) return;
  const QRect area = m_view.mapFromScene(item->textArea()).boundingRect();
  m_editor->setGeometry(QRect(area.topLeft(), area.size().expandedTo(kLeastEditorSize)));
}

void FrameEditing::close() {
  if (m_editor) m_editor->close();
}

}  // namespace fuseline::ui
