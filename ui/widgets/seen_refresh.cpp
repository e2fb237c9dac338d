// A dock behind another tab is not hidden: it stands outside of the window.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/seen_refresh.h"

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
  const bool canWait = m_pane.window()->isVisible() && m_isCostly();
  canWait ? m_pause.start() : refreshIfBehind();
}

bool SeenRefresh::isSeen() const { return m_pane.isVisible() && !m_pane.visibleRegion().isEmpty(); }

void SeenRefresh::refreshIfBehind() {
  if (std::exchange(m_isBehind, false)) m_refresh();
}

/// Widgets are not changed while they are painted.
bool SeenRefresh::eventFilter(QObject* watched, QEvent* event) {
  if (m_isBehind && !m_pause.isActive() && event->type() == QEvent::Paint)
    QMetaObject::invokeMethod(this, &SeenRefresh::refreshIfBehind, Qt::QueuedConnection);
  return QObject::eventFilter(watched, event);
}

}  // namespace fuseline::ui
