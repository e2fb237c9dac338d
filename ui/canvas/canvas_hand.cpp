// Drags over the canvas: moving the view, and cutting wires.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/canvas_hand.h"

#include "ui/canvas/wire_gesture.h"
#include "ui/session/edits.h"

namespace fuseline::ui {

CanvasHand::CanvasHand(QGraphicsView& view, GraphScene& scene, CanvasCamera& camera, const Theme& theme)
    : QObject(&view), m_view(view), m_scene(scene), m_camera(camera), m_theme(theme) {
  connect(&scene, &GraphScene::itemsChanged, this, [this] {
    if (m_cut) m_cut->mark();
  });
  connect(&scene.scope(), &CanvasScope::pathChanged, this, &CanvasHand::cancelCut);
}

bool CanvasHand::press(const QMouseEvent& event) {
  const bool isLeft = event.button() == Qt::LeftButton;
  if (event.button() == Qt::MiddleButton || (isLeft && m_isSpaceHeld))
    beginPan(event.pos());
  else if (isLeft && m_isCutHeld && !m_scene.wires().isDrawing())
    beginCut(m_view.mapToScene(event.pos()));
  else
    return false;
  return true;
}

bool CanvasHand::move(const QMouseEvent& event) {
  if (!m_cut && !m_isPanning) return false;
  m_cut ? moveCut(m_view.mapToScene(event.pos())) : pan(event.pos());
  return true;
}

bool CanvasHand::release(const QMouseEvent& event) {
  if (m_cut && event.button() == Qt::LeftButton) {
    finishCut();
    return true;
  }
  if (!m_isPanning) return false;
  m_isPanning = false;
  showCursor();
  return true;
}

bool CanvasHand::pressKey(const QKeyEvent& event) {
  const bool isPlain = !(event.modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::ShiftModifier));
  if (event.isAutoRepeat()) return false;
  if (event.key() == Qt::Key_Space)
    m_isSpaceHeld = true;
  else if (isPlain && event.key() == Qt::Key_X)
    m_isCutHeld = true;
  else
    return false;
  showCursor();
  return true;
}

void CanvasHand::releaseKey(const QKeyEvent& event) {
  if (event.isAutoRepeat()) return;
  if (event.key() == Qt::Key_Space) m_isSpaceHeld = false;
  if (event.key() == Qt::Key_X) m_isCutHeld = false;
  if (event.key() == Qt::Key_Space || event.key() == Qt::Key_X) showCursor();
}

void CanvasHand::releaseKeys() {
  m_isSpaceHeld = false;
  m_isCutHeld = false;
  showCursor();
}

/// Shows the effect of a drag at this place.
void CanvasHand::showCursor() {
  QWidget& viewport = *m_view.viewport();
  if (m_isCutHeld || m_cut) return viewport.setCursor(Qt::CrossCursor);
  m_isSpaceHeld ? viewport.setCursor(Qt::OpenHandCursor) : viewport.unsetCursor();
}

void CanvasHand::beginPan(QPoint place) {
  m_isPanning = true;
  m_panFrom = place;
  m_view.viewport()->setCursor(Qt::ClosedHandCursor);
}

void CanvasHand::pan(QPoint place) {
  m_camera.panBy(place - m_panFrom);
  m_panFrom = place;
}

void CanvasHand::beginCut(QPointF from) {
  m_cut = std::make_unique<WireCut>(m_scene, m_theme, from);
  Q_EMIT hint(tr("Drag across the wires to remove. Esc: cancel."));
}

void CanvasHand::moveCut(QPointF end) {
  m_cut->moveTo(end);
  const std::size_t count = m_cut->crossed().size();
  Q_EMIT hint(count == 1 ? tr("Release to remove 1 wire. Esc: cancel.")
                         : tr("Release to remove %1 wires. Esc: cancel.").arg(count));
}

void CanvasHand::finishCut() {
  const std::vector<Link> links = m_cut->crossed();
  cancelCut();
  if (!links.empty())
    m_scene.scope().apply(removeNodes(m_scene.scope().document(), QSet<QString>(), links, Reconnect::No));
}

bool CanvasHand::cancelCut() {
  if (!m_cut) return false;
  m_cut.reset();
  showCursor();
  Q_EMIT hint({});
  return true;
}

}  // namespace fuseline::ui
