// The palette's tree.
// SPDX-License-Identifier: Apache-2.0
#include "ui/library/palette_model.h"

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
  for (const PaletteEntry& entry : paletteEntries()) append(entry);
  updateSwatches();
}

QStandardItem* PaletteModel::makeItem(const PaletteEntry& entry) const {
  auto* item = new QStandardItem(entryTitle(entry));
  item->setData(toQt(entry.name), EntryRole);
  item->setToolTip(entryTip(entry));
  item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsDragEnabled);
  return item;
}

void PaletteModel::append(const PaletteEntry& entry) { categoryItem(toQt(entry.category))->appendRow(makeItem(entry)); }

void PaletteModel::setUsed(const QStringList& favorites, const QStringList& recents) {
  setTop(0, tr("Favorites"), favorites);
  setTop(favorites.isEmpty() ? 0 : 1, tr("Recently used"), recents);
  updateSwatches();
}

/// Blocks of other documents are left out.
void PaletteModel::setTop(int row, const QString& category, const QStringList& entries) {
  for (const QStandardItem* old : findItems(category)) removeRow(old->row());
  QList<QStandardItem*> items;
  for (const QString& name : entries)
    if (const PaletteEntry* entry = entryOf(name.toStdString())) items.append(makeItem(*entry));
  if (items.isEmpty()) return;
  QStandardItem* top = categoryItem(category);
  insertRow(row, takeRow(top->row()));
  top->appendRows(items);
}

void PaletteModel::setBlocks(std::vector<PaletteEntry> blocks) {
  if (blocks == m_blocks) return;
  if (!m_blocks.empty()) removeRow(categoryItem(toQt(m_blocks.front().category))->row());
  m_blocks = std::move(blocks);
  for (const PaletteEntry& entry : m_blocks) append(entry);
  updateSwatches();
}

const PaletteEntry* PaletteModel::entry(const QModelIndex& index) const {
  return entryOf(index.data(EntryRole).toString().toStdString());
}

const PaletteEntry* PaletteModel::entryOf(const std::string& name) const {
  for (const auto* entries : {&paletteEntries(), &m_blocks}) {
    const auto found = std::ranges::find(*entries, name, &PaletteEntry::name);
    if (found != entries->end()) return &*found;
  }
  return nullptr;
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
    for (int child = 0; child < category->rowCount(); ++child) {
      const PaletteEntry* shown = entry(category->child(child)->index());
      category->child(child)->setIcon(swatch(m_theme.categoryColor(shown ? shown->category : std::string())));
    }
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

PaletteFilter::PaletteFilter(PaletteModel& model, QObject* parent) : QSortFilterProxyModel(parent), m_model(model) {
  setRecursiveFilteringEnabled(true);
  setSourceModel(&model);
}

void PaletteFilter::setQuery(const QString& query) {
  m_query = query;
  invalidateFilter();
}

bool PaletteFilter::filterAcceptsRow(int row, const QModelIndex& parent) const {
  if (!parent.isValid()) return false;  // a category stays when one of its ops does
  const PaletteEntry* entry = m_model.entry(m_model.index(row, 0, parent));
  return entry && matchRank(*entry, m_query).has_value();
}

}  // namespace fuseline::ui
