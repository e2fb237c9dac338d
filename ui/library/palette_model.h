// PaletteModel: the op library as a tree of categories, with drag data; and its filter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/library/op_search.h"
#include "ui/theme/theme.h"

#include <QSortFilterProxyModel>
#include <QStandardItemModel>

namespace fuseline::ui {

/// MIME type of a drag from the palette; its data is the entry's name.
inline constexpr char kOpMimeType[] = "application/x-fuseline-op";

class PaletteModel : public QStandardItemModel {
  Q_OBJECT

 public:
  enum Role { EntryRole = Qt::UserRole + 1 };
  explicit PaletteModel(const Theme& theme, QObject* parent = nullptr);
  QStringList mimeTypes() const override { return {QString::fromLatin1(kOpMimeType)}; }
  QMimeData* mimeData(const QModelIndexList& indexes) const override;
  /// The blocks of the document; with none the category is gone.
  void setBlocks(std::vector<PaletteEntry> blocks);
  /// Categories at the top, of entries that have a place further down, too; with none a category is gone.
  void setUsed(const QStringList& favorites, const QStringList& recents);
  /// nullptr for a category.
  const PaletteEntry* entry(const QModelIndex& index) const;
  /// Swatches are drawn anew in the theme's colors.
  void updateSwatches();

 private:
  void append(const PaletteEntry& entry);
  QStandardItem* makeItem(const PaletteEntry& entry) const;
  const PaletteEntry* entryOf(const std::string& name) const;
  QStandardItem* categoryItem(const QString& category);
  void setTop(int row, const QString& category, const QStringList& entries);
  const Theme& m_theme;
  std::vector<PaletteEntry> m_blocks;
};

class PaletteFilter : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit PaletteFilter(PaletteModel& model, QObject* parent = nullptr);
  void setQuery(const QString& query);

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

 private:
  const PaletteModel& m_model;
  QString m_query;
};

}  // namespace fuseline::ui
