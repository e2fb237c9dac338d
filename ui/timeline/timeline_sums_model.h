// TimelineSumsModel: the table of sums over a time range of the timeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/comparison_text.h"
#include "ui/timeline/timeline_area.h"

#include <QAbstractTableModel>
#include <QStringList>

#include <vector>

namespace fuseline::ui {

/// One unit a column. The sums of tracks stay last, whatever rows are sorted by.
class TimelineSumsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column {
    NameColumn,
    PlanColumn,
    PassColumn,
    CountColumn,
    SumColumn,
    MedianColumn,
    ShareColumn,
    IdleColumn,
    BytesColumn,
    BandwidthColumn,
    ColumnCount
  };
  /// TotalRole, OwnersRole: whether the row is a track's sum, and its ops. BarRole: share of a time in the range.
  enum Role { TotalRole = Qt::UserRole + 1, OwnersRole, BarRole };

  explicit TimelineSumsModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  /// Shows the sums of a time range of lengthNs; keeps the sort order. trackNames: by track.
  void setSums(std::vector<TimelineSum> sums, double lengthNs, const QStringList& trackNames);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  void sort(int column, Qt::SortOrder order) override;

 private:
  QString textOf(const TimelineSum& sum, int column) const;
  QVariant valueOf(const TimelineSum& sum, int column) const;
  QString trackName(const TimelineSum& sum) const { return m_trackNames.value(static_cast<qsizetype>(sum.track)); }
  void arrange();

  std::vector<TimelineSum> m_sums;  // as they come
  std::vector<std::size_t> m_order;
  double m_lengthNs = 1.0;
  QStringList m_trackNames;
  ColumnUnit m_time;
  ColumnUnit m_bytes;
  int m_sorted = -1;
  Qt::SortOrder m_direction = Qt::AscendingOrder;
};

}  // namespace fuseline::ui
