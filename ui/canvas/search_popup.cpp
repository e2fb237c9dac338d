// A field over a list of what matches.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/search_popup.h"

#include <QHeaderView>
#include <QKeyEvent>
#include <QScreen>
#include <QVBoxLayout>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr int kHeightPx = 300;
constexpr int kReasonRole = Qt::UserRole + 1;

}  // namespace

SearchPopup::SearchPopup(const QString& what, Search search, QWidget* parent)
    : QFrame(parent, Qt::Popup),
      m_search(std::move(search)),
      m_query(new QLineEdit(this)),
      m_list(new QTreeWidget(this)),
      m_showAll(new QCheckBox(tr("Show &incompatible ops, and why"), this)),
      m_reason(new QLabel(this)) {
  setAttribute(Qt::WA_DeleteOnClose);
  setFrameShape(StyledPanel);
  m_query->setPlaceholderText(what);
  m_query->setAccessibleName(what);
  m_query->installEventFilter(this);
  m_list->setAccessibleName(tr("Search results"));
  m_list->setFrameShape(NoFrame);
  m_list->setColumnCount(2);
  m_list->setHeaderHidden(true);
  m_list->setRootIsDecorated(false);
  m_list->setUniformRowHeights(true);
  m_list->header()->setStretchLastSection(false);
  m_list->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  m_list->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 8, 8, 8);
  layout->addWidget(m_query);
  layout->addWidget(m_list);
  layout->addWidget(m_reason);
  layout->addWidget(m_showAll);
  m_reason->setWordWrap(true);
  m_reason->hide();
  m_showAll->hide();
  connect(m_query, &QLineEdit::textChanged, this, &SearchPopup::fill);
  connect(m_query, &QLineEdit::returnPressed, this, &SearchPopup::accept);
  connect(m_list, &QTreeWidget::itemClicked, this, &SearchPopup::accept);
  connect(m_list, &QTreeWidget::currentItemChanged, this, &SearchPopup::showReason);
  connect(m_showAll, &QCheckBox::toggled, this, &SearchPopup::fill);
  fill();
}

void SearchPopup::openAt(QPoint screenPosition, int widthPx) {
  resize(widthPx, kHeightPx);
  const QRect room = screen()->availableGeometry();
  move(std::clamp(screenPosition.x(), room.left(), std::max(room.left(), room.right() - width())),
       std::clamp(screenPosition.y(), room.top(), std::max(room.top(), room.bottom() - height())));
  show();
  m_query->setFocus();
}

void SearchPopup::fill() {
  m_list->clear();
  const Search& search = m_showAll->isChecked() ? m_wider : m_search;
  for (const SearchChoice& choice : search(m_query->text())) {
    auto* item = new QTreeWidgetItem(m_list, {choice.title, choice.detail});
    item->setData(0, Qt::UserRole, choice.key);
    item->setToolTip(0, choice.tip);
    item->setForeground(1, palette().placeholderText());
    item->setData(0, kReasonRole, choice.reason);
    if (!isUsable(item)) item->setForeground(0, palette().brush(QPalette::Disabled, QPalette::Text));
  }
  m_list->setCurrentItem(m_list->topLevelItem(0));
}

void SearchPopup::setWider(Search search) {
  m_wider = std::move(search);
  m_showAll->show();
}

bool SearchPopup::isUsable(const QTreeWidgetItem* item) const {
  return item && item->data(0, kReasonRole).toString().isEmpty();
}

void SearchPopup::showReason() {
  const QTreeWidgetItem* item = m_list->currentItem();
  m_reason->setText(item ? item->data(0, kReasonRole).toString() : QString());
  m_reason->setVisible(!m_reason->text().isEmpty());
}

void SearchPopup::accept() {
  if (!isUsable(m_list->currentItem())) return;
  const QString key = m_list->currentItem()->data(0, Qt::UserRole).toString();
  close();
  Q_EMIT chosen(key);
}

bool SearchPopup::eventFilter(QObject* watched, QEvent* event) {
  if (watched == m_query && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Down || key == Qt::Key_Up) {
      QTreeWidgetItem* const current = m_list->currentItem();
      QTreeWidgetItem* const next = key == Qt::Key_Down ? m_list->itemBelow(current) : m_list->itemAbove(current);
      if (next) m_list->setCurrentItem(next);
      return true;
    }
    if (key == Qt::Key_Tab) return true;
  }
  return QFrame::eventFilter(watched, event);
}

}  // namespace fuseline::ui
