// The search-to-insert popup.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/search_popup.h"

#include "ui/theme/format.h"

#include <QKeyEvent>
#include <QScreen>
#include <QVBoxLayout>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr QSize kPopupSize(320, 300);

}  // namespace

SearchPopup::SearchPopup(std::vector<PaletteEntry> blocks, QWidget* parent)
    : QFrame(parent, Qt::Popup),
      m_blocks(std::move(blocks)),
      m_query(new QLineEdit(this)),
      m_list(new QListWidget(this)) {
  setAttribute(Qt::WA_DeleteOnClose);
  setFrameShape(StyledPanel);
  m_query->setPlaceholderText(tr("Search an op by name or keyword"));
  m_query->setAccessibleName(tr("Search an op"));
  m_query->installEventFilter(this);
  m_list->setAccessibleName(tr("Matching ops"));
  m_list->setFrameShape(NoFrame);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 8, 8, 8);
  layout->addWidget(m_query);
  layout->addWidget(m_list);
  connect(m_query, &QLineEdit::textChanged, this, &SearchPopup::fill);
  connect(m_query, &QLineEdit::returnPressed, this, &SearchPopup::accept);
  connect(m_list, &QListWidget::itemClicked, this, &SearchPopup::accept);
  fill();
}

void SearchPopup::openAt(QPoint screenPosition) {
  resize(kPopupSize);
  const QRect room = screen()->availableGeometry();
  move(std::clamp(screenPosition.x(), room.left(), std::max(room.left(), room.right() - width())),
       std::clamp(screenPosition.y(), room.top(), std::max(room.top(), room.bottom() - height())));
  show();
  m_query->setFocus();
}

void SearchPopup::fill() {
  m_list->clear();
  for (const PaletteEntry& entry : searchEntries(m_query->text(), m_blocks)) {
    auto* item = new QListWidgetItem(QStringLiteral("%1   %2").arg(entryTitle(entry), toQt(entry.category)), m_list);
    item->setData(Qt::UserRole, toQt(entry.name));
    item->setToolTip(entryTip(entry));
  }
  m_list->setCurrentRow(0);
}

void SearchPopup::accept() {
  if (!m_list->currentItem()) return;
  const QString entry = m_list->currentItem()->data(Qt::UserRole).toString();
  close();
  Q_EMIT chosen(entry);
}

bool SearchPopup::eventFilter(QObject* watched, QEvent* event) {
  if (watched == m_query && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Down || key == Qt::Key_Up) {
      const int row = m_list->currentRow() + (key == Qt::Key_Down ? 1 : -1);
      m_list->setCurrentRow(std::clamp(row, 0, std::max(0, m_list->count() - 1)));
      return true;
    }
    if (key == Qt::Key_Tab) return true;
  }
  return QFrame::eventFilter(watched, event);
}

}  // namespace fuseline::ui
