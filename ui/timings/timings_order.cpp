// Compares rows of timings.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/timings_order.h"

#include "ui/timings/timings_model.h"

#include <utility>

namespace fuseline::ui {

namespace {

/// In either direction rows with a value come first, then those without, then the sums.
enum Rank { HasValue, HasNone, IsSum };

Rank rankOf(const QModelIndex& index) {
  if (!index.parent().isValid() && index.data(TimingsModel::FooterRole).toBool()) return IsSum;
  return index.data(TimingsModel::SortRole).isValid() ? HasValue : HasNone;
}

}  // namespace

TimingsOrder::TimingsOrder(QObject* parent) : QSortFilterProxyModel(parent) {
  setSortRole(TimingsModel::SortRole);
  setSortCaseSensitivity(Qt::CaseInsensitive);
  setRecursiveFilteringEnabled(true);
  setAutoAcceptChildRows(true);
}

void TimingsOrder::keepOnly(std::optional<StepNames> steps) {
  m_kept = std::move(steps);
  invalidateFilter();
}

bool TimingsOrder::filterAcceptsRow(int row, const QModelIndex& parent) const {
  const QModelIndex index = sourceModel()->index(row, 0, parent);
  if (!m_kept || index.data(TimingsModel::FooterRole).toBool()) return true;
  const ComparisonRow& times = static_cast<const TimingsModel*>(sourceModel())->rowAt(index).times;
  return m_kept->contains({times.phase, times.label});
}

bool TimingsOrder::lessThan(const QModelIndex& left, const QModelIndex& right) const {
  const Rank leftRank = rankOf(left);
  const Rank rightRank = rankOf(right);
  if (leftRank != rightRank) return sortOrder() == Qt::AscendingOrder ? leftRank < rightRank : rightRank < leftRank;
  return leftRank == HasValue && QSortFilterProxyModel::lessThan(left, right);
}

}  // namespace fuseline::ui
