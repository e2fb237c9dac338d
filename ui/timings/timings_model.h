// TimingsModel: a run as a tree: fused ops, their basic ops beneath them, then the totals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_comparison.h"
#include "core/profile/run_record.h"
#include "ui/theme/theme.h"
#include "ui/timings/timings_columns.h"

#include <QAbstractItemModel>

#include <optional>
#include <string>
#include <vector>

namespace fuseline::ui {

/// A baseline, and how a run differs from it.
struct ComparedBaseline {
  Baseline baseline;
  RunComparison comparison;
};

class TimingsModel : public QAbstractItemModel {
  Q_OBJECT

 public:
  using enum TimingsColumn::Id;
  using Column = TimingsColumn::Id;
  enum Role {
    OwnersRole = Qt::UserRole + 1,  // QStringList of document ops
    ShareRole,                      // how long the bar in the cell is, 0 to 1; negative: no bar
    FooterRole,                     // true for totals
    SortRole                        // a number, or the words of a column of words; invalid: the row has none
  };
  explicit TimingsModel(const Theme& theme, QObject* parent = nullptr);

  void setRecord(const RunRecord& record);
  /// After setRecord(): fills the columns of the baselines, empties the others, and lists steps that only baselines
  /// have before the sums.
  void setComparisons(std::vector<ComparedBaseline> comparisons);
  void setChangeUnit(ChangeUnit unit);
  ChangeUnit changeUnit() const { return m_units.change; }
  /// nullopt: that of the longest time.
  void setTimeUnit(std::optional<ColumnUnit> unit);
  /// After setRecord(): what the user says of its steps, and of those that are gone.
  void setNotes(const RunRecord& record);
  void clear();
  /// Figures of a run that is not of what is shown stand in italics.
  void setStale(bool isStale);
  const TimingsRow& rowAt(const QModelIndex& index) const;
  /// nullptr: nothing was measured.
  const TimingsRow* endToEnd() const;

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& index) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  /// Requests a change of a note; the owner of the run answers with setNotes().
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;

 Q_SIGNALS:
  void noteWanted(const fuseline::RowNote& note);

 private:
  struct Group {
    TimingsRow row;
    std::vector<TimingsRow> parts;
    bool isFooter = false;
    /// Totals that are no times: memory. They say their unit.
    QString unfusedText, fusedText;

    bool isMemory() const { return !unfusedText.isEmpty() || !fusedText.isEmpty(); }
  };
  const Group& groupAt(const QModelIndex& index) const;
  QString cellText(const QModelIndex& index) const;
  QString memoryText(const Group& group, const TimingsColumn& column) const;
  QVariant sortKey(const QModelIndex& index) const;
  QVariant share(const QModelIndex& index) const;
  QVariant foreground(const QModelIndex& index) const;
  QVariant background(const QModelIndex& index) const;
  QVariant font(const QModelIndex& index) const;
  QString tip(const QModelIndex& index) const;
  void compare(const ComparedBaseline& compared);
  TimingsRow* rowOf(const MetricChange& change, const std::string& variant);
  void removeGone();
  void addGone(const std::vector<ComparedBaseline>& comparisons);
  template <class Act>
  void forEachRow(Act act);
  void tellColumns(int first, int last, const QList<int>& roles = {});
  QVariant baselineHeader(const TimingsColumn& column, int role) const;
  void addSteps(const RunRecord& record, const Comparison& comparison);
  void addTimes(const RunRecord& record);
  void addMemory(const RunRecord& record);
  void chooseUnits(const Comparison& comparison);

  const Theme& m_theme;
  std::vector<Group> m_groups;
  std::vector<ComparedBaseline> m_comparisons;
  TimingsUnits m_units;
  ColumnUnit m_fittingTime;  // in which steps have three digits
  std::optional<ColumnUnit> m_chosenTime;
  std::string m_endToEndLabel;
  double m_longestNs = 0;
  bool m_isStale = false;
};

}  // namespace fuseline::ui
