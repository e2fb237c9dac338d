// TimingsOrder: the table of timings, sorted by a column. Parts stay beneath their fused step, and sums at the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/timings/run_filter.h"

#include <QSortFilterProxyModel>

#include <optional>

namespace fuseline::ui {

/// Over a TimingsModel. Equal rows keep the order in which they were; column -1 is the order of the plan.
class TimingsOrder : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit TimingsOrder(QObject* parent = nullptr);
  /// Rows of other steps are hidden, sums are not; nullopt: all are shown. A part keeps the fused step above it.
  void keepOnly(std::optional<StepNames> steps);

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
  bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

 private:
  std::optional<StepNames> m_kept;
};

}  // namespace fuseline::ui
