// RunsModel: the history of runs as a table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/run_history.h"
#include "ui/theme/theme.h"

#include <QAbstractTableModel>

#include <functional>
#include <vector>

namespace fuseline::ui {

class RunsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column {
    StarColumn,
    WhenColumn,
    NoteColumn,
    RecipeColumn,
    PassColumn,
    DeviceColumn,
    UnfusedColumn,
    FusedColumn,
    SpeedupColumn,
    StateColumn,
    ColumnCount
  };
  explicit RunsModel(const Theme& theme, QObject* parent = nullptr);

  /// Rows that stay are not taken away in between, so that a note can go on being edited.
  void setEntries(const std::vector<RunEntry>& entries, const std::function<RunStanding(const RunEntry&)>& standingOf);
  const RunEntry& entry(int row) const { return m_entries[static_cast<std::size_t>(row)]; }
  /// -1: there is no such file.
  int rowOf(const std::filesystem::path& file) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 Q_SIGNALS:
  void noteWanted(const fuseline::RunEntry& entry, const fuseline::RunNote& note);

 private:
  void removeOthers(const std::vector<RunEntry>& entries);
  void takeAway(int row);
  void putAt(int row, const RunEntry& entry);
  void replace(int row, const RunEntry& entry);
  void refreshFacts();
  QString cellText(int row, int column) const;
  QString summaryText(const RunSummary& summary, int column) const;
  QString stateText(int row) const;
  QString stateTip(int row) const;

  const Theme& m_theme;
  std::vector<RunEntry> m_entries;
  std::vector<RunStanding> m_standings;
};

}  // namespace fuseline::ui
