// Where the keyboard is, pane by pane.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/pane_ring.h"

#include <QApplication>
#include <QEvent>
#include <QPainter>

namespace fuseline::ui {

namespace {

constexpr int kRingWidthPx = 2;

bool takesTab(const QWidget& widget) {
  const bool isReachable = widget.isVisible() && widget.isEnabled() && !widget.focusProxy();
  return isReachable && (widget.focusPolicy() & Qt::TabFocus);
}

}  // namespace

PaneRing::PaneRing(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
  setAttribute(Qt::WA_TransparentForMouseEvents);
  hide();
  connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) { follow(now); });
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

// Beside the pane and not in it: a scroll area raises its bars above its other children.
void PaneRing::showAround(QWidget& pane) {
  if (m_pane) m_pane->removeEventFilter(this);
  m_pane = &pane;
  pane.installEventFilter(this);
  setParent(pane.parentWidget());
  setGeometry(pane.geometry());
  raise();
  show();
}

void PaneRing::follow(const QWidget* focus) {
  if (m_pane && focus && focus != m_pane && !m_pane->isAncestorOf(focus)) hide();
}

bool PaneRing::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize || event->type() == QEvent::Move) setGeometry(m_pane->geometry());
  return QWidget::eventFilter(watched, event);
}

void PaneRing::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setPen(QPen(m_theme.colors().accent, kRingWidthPx));
  painter.drawRect(rect().adjusted(1, 1, -1, -1));
}

QWidget& firstInPane(QWidget& pane) {
  if (takesTab(pane)) return pane;
  for (QWidget* child : pane.findChildren<QWidget*>())
    if (takesTab(*child)) return *child;
  return pane;
}

void joinTabOrder(QWidget& before, QWidget& content) {
  QList<QWidget*> chain = {&before};
  for (QWidget* next = content.nextInFocusChain(); content.isAncestorOf(next); next = next->nextInFocusChain())
    if (!next->focusProxy() && (next->focusPolicy() & Qt::TabFocus)) chain.append(next);
  for (qsizetype i = 1; i < chain.size(); ++i) QWidget::setTabOrder(chain[i - 1], chain[i]);
}

}  // namespace fuseline::ui
