// The table of the memory dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/memory/kept_table.h"

#include "core/support/text.h"
#include "ui/theme/format.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/table_copying.h"

#include <QAction>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QScopedValueRollback>

#include <algorithm>

namespace fuseline::ui {

namespace {

/// Pipelines with more ops than this open with their tensors hidden.
constexpr std::size_t kMostOpen = 12;
constexpr int kBarRoomPx = 50;

class BytesDelegate : public RoomyDelegate {
 public:
  BytesDelegate(const Theme& theme, QObject* parent) : RoomyDelegate(parent), m_theme(theme) {}

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QRectF bar = QRectF(option.rect).adjusted(6, 3, -6, -3);
    bar.setWidth(bar.width() * index.data(KeptTable::ShareRole).toDouble());
    QColor color = m_theme.colors().activation;
    color.setAlpha(m_theme.isDark() ? 90 : 70);
    painter->fillRect(bar, color);
    QStyledItemDelegate::paint(painter, option, index);
  }

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    return RoomyDelegate::sizeHint(option, index) + QSize(kBarRoomPx, 0);
  }

 private:
  const Theme& m_theme;
};

QStandardItem* cell(const QString& text) {
  auto* item = new QStandardItem(text);
  item->setEditable(false);
  return item;
}

QStandardItem* bytesCell(std::optional<std::int64_t> bytes) {
  QStandardItem* item = cell(bytes ? toQt(formatBytes(*bytes)) : QStringLiteral("–"));
  item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  return item;
}

QStandardItem* sumCell(std::int64_t bytes, std::int64_t largest) {
  QStandardItem* item = bytesCell(bytes);
  item->setData(static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(largest, 1)),
                KeptTable::ShareRole);
  return item;
}

QList<QStandardItem*> rowOf(const KeptRow& row) {
  QStandardItem* lifetime = cell(row.lifetime);
  lifetime->setToolTip(row.lifetime);
  return {cell(row.tensor), bytesCell(row.unfusedBytes), bytesCell(row.fusedBytes), cell(row.spec), lifetime};
}

QList<QStandardItem*> rowOf(const KeptGroup& group, std::int64_t largest) {
  QStandardItem* name = cell(group.op);
  name->setData(group.owner, KeptTable::OwnerRole);
  for (const KeptRow& row : group.rows) name->appendRow(rowOf(row));
  return {name, sumCell(group.unfusedBytes(), largest), sumCell(group.fusedBytes(), largest), cell(QString()),
          cell(QString())};
}

}  // namespace

KeptTable::KeptTable(Session& session, const Theme& theme, QWidget* parent)
    : QTreeView(parent), m_session(session), m_model(new QStandardItemModel(this)) {
  setModel(m_model);
  setAccessibleName(tr("Tensors kept for backward"));
  setFrameShape(QFrame::NoFrame);
  setUniformRowHeights(true);
  setAlternatingRowColors(true);
  makeRoomy(*this);
  for (const int column : {UnfusedColumn, FusedColumn})
    setItemDelegateForColumn(column, new BytesDelegate(theme, this));
  makeCopyable(*this);
  connect(&session.selection(), &Selection::changed, this, &KeptTable::followSelection);
  connect(&theme, &Theme::changed, viewport(), qOverload<>(&QWidget::update));
}

void KeptTable::setGroups(const std::vector<KeptGroup>& groups) {
  const QScopedValueRollback guard(m_isFollowing, true);
  m_model->clear();
  m_model->setHorizontalHeaderLabels(
      {tr("Saved for backward by"), tr("Unfused"), tr("Fused"), tr("Tensor"), tr("In use")});
  for (const int column : {UnfusedColumn, FusedColumn})
    m_model->horizontalHeaderItem(column)->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  std::int64_t largest = 0;
  for (const KeptGroup& group : groups) largest = std::max({largest, group.unfusedBytes(), group.fusedBytes()});
  for (const KeptGroup& group : groups) m_model->appendRow(rowOf(group, largest));
  if (groups.size() <= kMostOpen) expandAll();
  for (int column = 0; column < LifetimeColumn; ++column) resizeColumnToContents(column);
  followSelection();
}

void KeptTable::currentChanged(const QModelIndex& current, const QModelIndex& previous) {
  QTreeView::currentChanged(current, previous);
  if (m_isFollowing || !current.isValid()) return;
  const QModelIndex op = current.parent().isValid() ? current.parent() : current.siblingAtColumn(NameColumn);
  const QScopedValueRollback guard(m_isFollowing, true);
  m_session.selection().select({op.data(OwnerRole).toString()});
}

void KeptTable::followSelection() {
  const QScopedValueRollback guard(m_isFollowing, true);
  selectionModel()->clearSelection();
  QModelIndex first;
  for (int row = 0; row < m_model->rowCount(); ++row) {
    const QModelIndex op = m_model->index(row, NameColumn);
    if (!m_session.selection().ids().contains(op.data(OwnerRole).toString())) continue;
    selectionModel()->select(op, QItemSelectionModel::Select | QItemSelectionModel::Rows);
    if (!first.isValid()) first = op;
  }
  if (first.isValid()) scrollTo(first);
}

}  // namespace fuseline::ui
