// The palette dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/palette_panel.h"

#include "ui/panels/undo_keys.h"

#include <QKeyEvent>
#include <QVBoxLayout>

namespace fuseline::ui {

PalettePanel::PalettePanel(const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_model(new PaletteModel(theme, this)),
      m_filter(new PaletteFilter(*m_model, this)),
      m_filterEdit(new QLineEdit(this)),
      m_view(new QTreeView(this)) {
  m_filterEdit->setPlaceholderText(tr("Filter ops"));
  m_filterEdit->setClearButtonEnabled(true);
  m_filterEdit->setAccessibleName(tr("Filter ops"));
  m_filterEdit->installEventFilter(this);
  shareUndoKeys(*m_filterEdit, [this] { return m_filterEdit->isModified(); });
  m_view->setModel(m_filter);
  m_view->setHeaderHidden(true);
  m_view->setDragEnabled(true);
  m_view->setDragDropMode(QAbstractItemView::DragOnly);
  m_view->setIndentation(14);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Op library"));
  m_view->expandAll();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 6, 6);
  layout->addWidget(m_filterEdit);
  layout->addWidget(m_view);
  connect(m_filterEdit, &QLineEdit::textChanged, this, &PalettePanel::applyFilter);
  connect(m_filterEdit, &QLineEdit::returnPressed, this, &PalettePanel::activateCurrent);
  connect(m_view, &QTreeView::activated, this, &PalettePanel::activateCurrent);
  connect(&theme, &Theme::changed, this, [this] { m_model->updateSwatches(); });
}

void PalettePanel::showBlocks(const PipelineDocument& document) {
  m_model->setBlocks(blockEntries(document));
  m_view->expandAll();
}

void PalettePanel::applyFilter(const QString& query) {
  m_filter->setQuery(query);
  m_view->expandAll();
  selectFirstOp();
}

void PalettePanel::selectFirstOp() {
  const QModelIndex category = m_filter->index(0, 0);
  if (category.isValid()) m_view->setCurrentIndex(m_filter->index(0, 0, category));
}

void PalettePanel::activateCurrent() {
  const QString entry = m_view->currentIndex().data(PaletteModel::EntryRole).toString();
  if (entry.isEmpty()) return;
  m_filterEdit->setModified(false);  // its text has done its work: the next undo is about the op
  Q_EMIT activated(entry);
}

bool PalettePanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched == m_filterEdit && event->type() == QEvent::KeyPress) {
    if (static_cast<QKeyEvent*>(event)->key() == Qt::Key_Down) {
      m_view->setFocus();
      if (!m_view->currentIndex().isValid()) selectFirstOp();
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace fuseline::ui
