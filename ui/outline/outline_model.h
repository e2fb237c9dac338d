// OutlineModel: the outline as a tree, instances of blocks above their ops; and a filter by words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/comparison_text.h"
#include "ui/outline/outline.h"
#include "ui/theme/theme.h"

#include <QAbstractItemModel>
#include <QSortFilterProxyModel>

#include <vector>

namespace fuseline::ui {

class OutlineModel : public QAbstractItemModel {
  Q_OBJECT

 public:
  enum Column {
    NameColumn,
    OperationColumn,
    OutputColumn,
    ForwardColumn,
    BackwardColumn,
    TimeColumn,
    ProblemsColumn,
    ColumnCount
  };
  enum Role {
    NodeRole = Qt::UserRole + 1,  // the id in the pipeline
    PlaceRole                     // that, or the path of what stands inside an instance
  };
  explicit OutlineModel(const Theme& theme, QObject* parent = nullptr);

  /// Keeps what is selected and open where only values have changed.
  void setRows(std::vector<OutlineRow> rows);
  const OutlineRow& row(const QModelIndex& index) const { return m_rows[static_cast<std::size_t>(index.internalId())]; }
  bool hasTimes() const;
  /// Is there an instance of a block?
  bool hasParts() const { return m_top.size() < m_rows.size(); }

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& index) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  /// Asks for the new name and is false: the pipeline may refuse it.
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;

 Q_SIGNALS:
  void renameRequested(const QString& id, const QString& newId);

 private:
  const std::vector<int>& parts(const QModelIndex& parent) const;
  QString cellText(const OutlineRow& row, int column) const;
  QString tip(const OutlineRow& row, int column) const;
  void reportChange(const QModelIndex& parent);
  void chooseTimeUnit();

  const Theme& m_theme;
  std::vector<OutlineRow> m_rows;
  ColumnUnit m_timeUnit{"ms", 1e6};  // of all times
  std::vector<int> m_top;            // of the pipeline itself, indices of m_rows
  std::vector<int> m_ordinals;       // by row: its place among its siblings
};

/// Shows the rows that have every word somewhere; an instance also for its ops, and all ops of an instance that has
/// them.
class OutlineFilter : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit OutlineFilter(OutlineModel& model, QObject* parent = nullptr);
  void setQuery(const QString& query);
  const OutlineRow& row(const QModelIndex& index) const { return m_model.row(mapToSource(index)); }

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

 private:
  OutlineModel& m_model;
  QStringList m_words;
};

}  // namespace fuseline::ui
