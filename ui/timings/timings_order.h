// TimingsOrder: the table of timings, sorted by a column. Parts stay beneath their fused step, and sums at the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QSortFilterProxyModel>

namespace fuseline::ui {

/// Over a TimingsModel. Equal rows keep the order in which they were; column -1 is the order of the plan.
class TimingsOrder : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit TimingsOrder(QObject* parent = nullptr);

 protected:
  bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;
};

}  // namespace fuseline::ui
