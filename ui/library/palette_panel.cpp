// The palette dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/library/palette_panel.h"

#include "core/ops/catalog.h"
#include "ui/library/operation_card.h"
#include "ui/theme/format.h"
#include "ui/widgets/undo_keys.h"

#include <QKeyEvent>
#include <QMenu>
#include <QMessageBox>
#include <QPainter>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

constexpr QPoint kGhostOffsetPx(14, 12);
constexpr double kGhostOpacity = 0.8;

QPixmap ghostOf(const QWidget& widget, const QString& text) {
  const QSize size = widget.fontMetrics().size(Qt::TextSingleLine, text) + QSize(20, 8);
  QPixmap ghost(size * widget.devicePixelRatioF());
  ghost.setDevicePixelRatio(widget.devicePixelRatioF());
  ghost.fill(Qt::transparent);
  QPainter painter(&ghost);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setOpacity(kGhostOpacity);
  painter.setFont(widget.font());
  painter.setPen(widget.palette().color(QPalette::Highlight));
  painter.setBrush(widget.palette().color(QPalette::ToolTipBase));
  painter.drawRoundedRect(QRectF(QPointF(0.5, 0.5), QSizeF(size) - QSizeF(1, 1)), 5, 5);
  painter.setPen(widget.palette().color(QPalette::ToolTipText));
  painter.drawText(QRect(QPoint(), size), Qt::AlignCenter, text);
  return ghost;
}

}  // namespace

std::unique_ptr<QDrag> PaletteView::makeDrag() {
  const QModelIndex entry = currentIndex();
  if (!(entry.flags() & Qt::ItemIsDragEnabled)) return nullptr;
  auto drag = std::make_unique<QDrag>(this);
  drag->setMimeData(model()->mimeData({entry}));
  drag->setPixmap(ghostOf(*this, entry.data().toString()));
  drag->setHotSpot(-kGhostOffsetPx);
  return drag;
}

void PaletteView::startDrag(Qt::DropActions actions) {
  // Qt deletes a drag itself when it is over.
  if (std::unique_ptr<QDrag> drag = makeDrag()) drag.release()->exec(actions, Qt::CopyAction);
}

PalettePanel::PalettePanel(const Theme& theme, bool isKept, QWidget* parent)
    : QWidget(parent),
      m_use(new OpUse(isKept, this)),
      m_model(new PaletteModel(theme, this)),
      m_filter(new PaletteFilter(*m_model, this)),
      m_filterEdit(new QLineEdit(this)),
      m_view(new PaletteView(this)) {
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
  m_view->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(m_view, &QWidget::customContextMenuRequested, this, &PalettePanel::showMenu);
  const auto showUsed = [this] {
    m_model->setUsed(m_use->favorites(), m_use->recents());
    m_view->expandAll();
  };
  connect(m_use, &OpUse::changed, this, showUsed);
  showUsed();
}

void PalettePanel::showMenu(QPoint place) {
  const QString entry = m_view->currentIndex().data(PaletteModel::EntryRole).toString();
  if (entry.isEmpty()) return;
  const bool isFavorite = m_use->favorites().contains(entry);
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  connect(menu->addAction(isFavorite ? tr("Remove from favorites") : tr("Add to favorites")), &QAction::triggered, this,
          [this, entry, isFavorite] { m_use->setFavorite(entry, !isFavorite); });
  if (const FusibleOperation* const operation = builtinOperations().find(entry.toStdString()))
    connect(menu->addAction(tr("Details...")), &QAction::triggered, this, [this, operation] { showCard(*operation); });
  menu->popup(m_view->viewport()->mapToGlobal(place));
}

/// The details that the tooltip leaves out: attributes, ports, cost, fusions and source.
void PalettePanel::showCard(const FusibleOperation& operation) {
  auto* box = new QMessageBox(QMessageBox::NoIcon, toQt(operation.name), operationCard(operation, {}),
                              QMessageBox::Close, this);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  box->open();
}

void PalettePanel::showDocument(const PipelineDocument& document, bool isUndone) {
  m_model->setBlocks(blockEntries(document));
  m_use->follow(document, isUndone);
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
