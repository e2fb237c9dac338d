// A dock behind another tab is not hidden: it stands outside of the window.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/seen_refresh.h"

#include <QDockWidget>
#include <QEvent>

#include <utility>

namespace fuseline::ui {

SeenRefresh::SeenRefresh(QWidget& pane, std::function<bool()> isCostly, std::function<void()> refresh,
                         std::function<bool()> isOutdated)
    : QObject(&pane),
      m_pane(pane),
      m_isCostly(std::move(isCostly)),
      m_refresh(std::move(refresh)),
      m_isOutdated(std::move(isOutdated)) {
  constexpr int kPauseMs = 150;
  m_pause.setSingleShot(true);
  m_pause.setInterval(kPauseMs);
  connect(&m_pause, &QTimer::timeout, this, [this] {
    if (m_isOutdated()) return m_pause.start();
    if (isSeen()) refreshIfBehind();
  });
  pane.installEventFilter(this);
}

void SeenRefresh::request() {
  m_isBehind = true;
  followDock();
  const bool canWait = m_pane.window()->isVisible() && m_isCostly();
  canWait ? m_pause.start() : refreshIfBehind();
}

/// By its place: a pane that is covered by its own children has no visible region.
bool SeenRefresh::isSeen() const {
  const QWidget& window = *m_pane.window();
  return m_pane.isVisible() && window.rect().intersects({m_pane.mapTo(&window, QPoint()), m_pane.size()});
}

/// A dock is moved when its tab comes to the front, and its pane is not.
void SeenRefresh::followDock() {
  for (QWidget* widget = &m_pane; widget && !m_dock; widget = widget->parentWidget())
    if (qobject_cast<QDockWidget*>(widget)) m_dock = widget;
  if (m_dock) m_dock->installEventFilter(this);  // again does no harm
}

void SeenRefresh::refreshIfBehind() {
  if (std::exchange(m_isBehind, false)) m_refresh();
}

/// Widgets are not changed while they are painted or moved.
bool SeenRefresh::eventFilter(QObject* watched, QEvent* event) {
  const bool mayBeSeen = event->type() == QEvent::Paint || event->type() == QEvent::Move ||
                         event->type() == QEvent::Show || event->type() == QEvent::Resize;
  if (m_isBehind && !m_pause.isActive() && mayBeSeen)
    QMetaObject::invokeMethod(
        this,
        [this] {
          if (isSeen()) refreshIfBehind();
        },
        Qt::QueuedConnection);
  return QObject::eventFilter(watched, event);
}

}  // namespace fuseline::ui
