// The history's dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/changes/history_panel.h"

#include "ui/widgets/roomy_delegate.h"

#include <QKeyEvent>
#include <QVBoxLayout>

namespace fuseline::ui {

HistoryPanel::HistoryPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_model(new HistoryModel(session, theme, this)),
      m_view(new QListView(this)) {
  m_view->setModel(m_model);
  m_view->setItemDelegate(new RoomyDelegate(m_view));
  m_view->setUniformItemSizes(true);
  m_view->setAlternatingRowColors(true);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setTextElideMode(Qt::ElideRight);
  m_view->setAccessibleName(tr("Edit history"));
  m_view->setAccessibleDescription(tr("Newest edit first. Enter: go to the state after this edit"));
  m_view->installEventFilter(this);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(m_view);
  connect(m_view, &QListView::clicked, this, &HistoryPanel::goTo);
  for (const auto signal : {&OpenPipeline::changed, &OpenPipeline::replaced})
    connect(&session.pipeline(), signal, this, &HistoryPanel::showCurrent);
  showCurrent();
}

/// Keys that a list takes for a search, or that are the window's.
bool HistoryPanel::eventFilter(QObject* watched, QEvent* event) {
  const bool isPress = event->type() == QEvent::KeyPress;
  if (watched != m_view || (!isPress && event->type() != QEvent::ShortcutOverride)) return false;
  const auto* key = static_cast<QKeyEvent*>(event);
  const bool isGo = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter || key->key() == Qt::Key_Space;
  if (!isGo || (key->modifiers() & ~Qt::KeypadModifier) != 0) return false;
  event->accept();
  if (isPress) goTo(m_view->currentIndex());
  return true;
}

void HistoryPanel::showCurrent() {
  const QModelIndex current = m_model->currentState();
  m_view->setCurrentIndex(current);
  m_view->scrollTo(current);
}

void HistoryPanel::goTo(const QModelIndex& index) {
  if (index.isValid()) m_session.pipeline().goTo(m_model->depthOf(index));
}

}  // namespace fuseline::ui
