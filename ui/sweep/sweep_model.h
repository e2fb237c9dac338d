// SweepModel: the rows of a sweep as a table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/sweep_result.h"
#include "ui/theme/theme.h"

#include <QAbstractTableModel>

#include <cstddef>
#include <vector>

namespace fuseline::ui {

class SweepModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column {
    SizeColumn,
    RecipeColumn,
    UnfusedColumn,
    FusedColumn,
    SpeedupColumn,
    MemoryColumn,
    FusionsColumn,
    LaunchesColumn,
    NoteColumn,
    ColumnCount
  };
  /// Role of the sort key of a column: a number, if it shows one.
  static constexpr int kSortRole = Qt::UserRole + 1;

  explicit SweepModel(const Theme& theme, QObject* parent = nullptr);

  /// Rows that are there already stay; one that begins anew replaces all.
  void setResult(const SweepResult& result);
  void clear();
  bool isMeasured(int row) const { return line(row).isMeasured; }
  bool hasRecipes() const { return m_hasRecipes; }
  bool hasReasons() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  struct Line {
    SweepPoint point;
    QString recipe;
    bool isMeasured = false;
    SampleStats unfused, fused;
    RatioStats speedup;
    std::int64_t unfusedPeakBytes = 0, fusedPeakBytes = 0;
    std::int64_t unfusedLaunches = 0, fusedLaunches = 0;
    std::vector<std::string> rules;
    QString reason;
  };
  static Line lineOf(const SweepRow& row);
  const Line& line(int row) const { return m_lines[static_cast<std::size_t>(row)]; }
  QString cellText(const Line& line, int column) const;
  QString tipText(const Line& line, int column) const;
  static QVariant sortValue(const Line& line, int column);
  QVariant colorOf(const Line& line, int column) const;

  const Theme& m_theme;
  QString m_symbol;
  bool m_hasRecipes = false;
  std::vector<Line> m_lines;
};

}  // namespace fuseline::ui
