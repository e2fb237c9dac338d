// Keys go to the gesture; the view follows the end of the wire.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/wire_keys.h"

#include "ui/canvas/metrics.h"
#include "ui/canvas/wire_gesture.h"

#include <QApplication>

#include <utility>

namespace fuseline::ui {

void WireKeys::draw() {
  WireGesture& wires = m_scene.wires();
  if (!wires.isDrawing()) m_keyboardBefore = m_view.hasFocus() ? nullptr : QApplication::focusWidget();
  wires.start();
  show();
  if (wires.isDrawing()) m_view.setFocus();
}

void WireKeys::cancel() {
  m_scene.wires().cancel();
  giveKeyboardBack();
}

bool WireKeys::aim(QPointF direction) {
  if (!m_scene.wires().isDrawing()) return false;
  m_scene.wires().aim(direction);
  show();
  return true;
}

bool WireKeys::finish() {
  if (!m_scene.wires().isDrawing()) return false;
  m_scene.wires().finish();
  giveKeyboardBack();
  return true;
}

void WireKeys::giveKeyboardBack() {
  if (QWidget* const before = std::exchange(m_keyboardBefore, nullptr)) before->setFocus();
}

void WireKeys::show() {
  if (!m_scene.wires().isDrawing()) return;
  constexpr QSizeF kRoom(kNodeWidthPx, kNodeHeightPx);
  m_camera.include(QRectF(m_scene.wires().end() - QPointF(kNodeWidthPx, kNodeHeightPx) / 2, kRoom));
}

}  // namespace fuseline::ui
