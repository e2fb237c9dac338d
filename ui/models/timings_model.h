// TimingsModel: a run as a tree: fused ops, their basic ops beneath them, then the totals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_comparison.h"
#include "core/profile/run_record.h"
#include "ui/theme/theme.h"

#include <QAbstractItemModel>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace fuseline::ui {

class TimingsModel : public QAbstractItemModel {
  Q_OBJECT

 public:
  enum Column {
    OpColumn,
    PassColumn,
    UnfusedColumn,
    FusedColumn,
    SpeedupColumn,
    BaselineColumn,  // of the fused plan, against another run
    BytesColumn,
    LaunchesColumn,
    BandwidthColumn,  // this one and the next: of the fused plan's step, of the unfused one where it has none
    RateColumn,
    RoofColumn,
    BoundColumn,
    ColumnCount
  };
  enum Role {
    OwnersRole = Qt::UserRole + 1,  // QStringList of document ops
    ShareRole,                      // a time over the longest unfused one, for the bar in the cell; negative: no bar
    FooterRole                      // true for totals
  };
  explicit TimingsModel(const Theme& theme, QObject* parent = nullptr);

  void setRecord(const RunRecord& record);
  /// After setRecord(): fills the column of the baseline, or empties it.
  void setComparison(const std::optional<RunComparison>& comparison);
  void clear();
  /// Were steps timed, so that there are rates?
  bool hasRates() const { return m_hasRates; }
  bool hasRoofs() const { return m_hasRoofs; }

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& index) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  struct Group {
    ComparisonRow row;
    std::vector<ComparisonRow> parts;
    bool isFooter = false;
    /// Totals that are no times: memory.
    QString unfusedText, fusedText;
  };
  const ComparisonRow& rowAt(const QModelIndex& index) const;
  const Group& groupAt(const QModelIndex& index) const;
  QString cellText(const QModelIndex& index) const;
  QString memoryText(const Group& group, int column) const;
  QString efficiencyText(const ComparisonRow& row, int column) const;
  void noteRates(const RunRecord& record);
  QVariant share(const QModelIndex& index) const;
  QVariant foreground(const QModelIndex& index) const;
  QString tip(const QModelIndex& index) const;
  void addTimes(const RunRecord& record);
  void addMemory(const RunRecord& record);
  void noteKernels(const RunRecord& record);
  QString kernelsText(const QModelIndex& index) const;
  const MetricChange* changeAt(const QModelIndex& index) const;

  const Theme& m_theme;
  std::vector<Group> m_groups;
  std::map<std::tuple<std::string, std::string, std::string>, QString> m_kernels;  // by variant, phase and step
  std::map<std::pair<std::string, std::string>, MetricChange> m_changes;           // by phase and label
  std::string m_endToEndLabel;
  double m_longestNs = 0;
  bool m_hasRates = false;
  bool m_hasRoofs = false;
  bool m_ratesAreTera = false;  // one unit for the column
};

}  // namespace fuseline::ui
