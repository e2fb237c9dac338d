// Watches the events of the window: panes with drops of their own come first.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/drops/file_drop.h"

namespace fuseline::ui {

FileDrop::FileDrop(QWidget& window) : QObject(&window), m_overlay(new DropOverlay(window)) {
  window.setAcceptDrops(true);
  window.installEventFilter(this);
}

bool FileDrop::eventFilter(QObject* watched, QEvent* event) {
  switch (event->type()) {
    case QEvent::DragEnter:
      m_files = filesIn(*static_cast<QDropEvent*>(event)->mimeData());
      return announce(*static_cast<QDropEvent*>(event));
    case QEvent::DragMove: return announce(*static_cast<QDropEvent*>(event));
    case QEvent::DragLeave: m_overlay->hide(); return true;
    case QEvent::Drop: return drop(*static_cast<QDropEvent*>(event));
    default: return QObject::eventFilter(watched, event);
  }
}

/// With Ctrl a drop compares, but for several files.
DropEffect FileDrop::effectOf(const QDropEvent& event) const {
  const bool isOne = m_files.size() == 1;
  return isOne && (event.modifiers() & Qt::ControlModifier) ? DropEffect::Compare : DropEffect::Open;
}

bool FileDrop::announce(QDropEvent& event) {
  if (m_files.isEmpty()) return false;
  m_overlay->announce(dropText(m_files, effectOf(event)));
  event.setDropAction(Qt::CopyAction);  // a file manager deletes what it has moved
  event.accept();
  return true;
}

bool FileDrop::drop(QDropEvent& event) {
  m_overlay->hide();
  if (m_files.isEmpty()) return false;
  event.setDropAction(Qt::CopyAction);
  event.accept();
  effectOf(event) == DropEffect::Compare ? Q_EMIT compareWanted(m_files.front()) : Q_EMIT openWanted(m_files);
  return true;
}

}  // namespace fuseline::ui
