// The palette's tree.
// SPDX-License-Identifier: Apache-2.0
#include "ui/models/palette_model.h"

#include "ui/models/op_search.h"
#include "ui/theme/format.h"

#include <QMimeData>
#include <QPainter>

#include <algorithm>

namespace fuseline::ui {

namespace {

QIcon swatch(const QColor& color) {
  QPixmap pixmap(32, 32);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawRoundedRect(QRectF(7, 5, 9, 22), 4, 4);
  return QIcon(pixmap);
}

}  // namespace

PaletteModel::PaletteModel(const Theme& theme, QObject* parent) : QStandardItemModel(parent), m_theme(theme) {
  for (const PaletteEntry& entry : paletteEntries()) {
    auto* item = new QStandardItem(toQt(entry.name));
    item->setData(toQt(entry.name), EntryRole);
    item->setToolTip(toQt(entry.summary));
    item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsDragEnabled);
    categoryItem(toQt(entry.category))->appendRow(item);
  }
  updateSwatches();
}

QStandardItem* PaletteModel::categoryItem(const QString& category) {
  const QList<QStandardItem*> found = findItems(category);
  if (!found.isEmpty()) return found.front();
  auto* item = new QStandardItem(category);
  item->setFlags(Qt::ItemIsEnabled);
  QFont font = item->font();
  font.setBold(true);
  item->setFont(font);
  appendRow(item);
  return item;
}

void PaletteModel::updateSwatches() {
  for (int row = 0; row < rowCount(); ++row) {
    QStandardItem* category = item(row);
    const QIcon icon = swatch(m_theme.categoryColor(category->text().toStdString()));
    for (int child = 0; child < category->rowCount(); ++child) category->child(child)->setIcon(icon);
  }
}

QMimeData* PaletteModel::mimeData(const QModelIndexList& indexes) const {
  if (indexes.isEmpty()) return nullptr;
  auto* data = new QMimeData;
  const QString entry = indexes.front().data(EntryRole).toString();
  data->setData(QString::fromLatin1(kOpMimeType), entry.toUtf8());
  data->setText(entry);
  return data;
}

PaletteFilter::PaletteFilter(QObject* parent) : QSortFilterProxyModel(parent) { setRecursiveFilteringEnabled(true); }

void PaletteFilter::setQuery(const QString& query) {
  m_query = query;
  invalidateFilter();
}

bool PaletteFilter::filterAcceptsRow(int row, const QModelIndex& parent) const {
  if (!parent.isValid()) return false;  // a category stays when one of its ops does
  const QString name = sourceModel()->index(row, 0, parent).data(PaletteModel::EntryRole).toString();
  const auto& entries = paletteEntries();
  const auto entry = std::ranges::find(entries, name.toStdString(), &PaletteEntry::name);
  return entry != entries.end() && matchRank(*entry, m_query).has_value();
}

}  // namespace fuseline::ui
