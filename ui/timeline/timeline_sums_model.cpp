// Cells of the table of sums.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_sums_model.h"

#include "ui/theme/format.h"
#include "ui/timings/timings_columns.h"

#include <QFont>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fuseline::ui {

namespace {

constexpr double kPercent = 100.0;

bool isWords(int column) { return column <= TimelineSumsModel::PassColumn; }

QString tipOf(int column) {
  switch (column) {
    case TimelineSumsModel::SumColumn: return TimelineSumsModel::tr("Time of boxes, clipped to the time range");
    case TimelineSumsModel::MedianColumn: return TimelineSumsModel::tr("Median over these boxes");
    case TimelineSumsModel::ShareColumn: return TimelineSumsModel::tr("Share of the time range's length");
    case TimelineSumsModel::IdleColumn:
      return TimelineSumsModel::tr(
          "Idle time of the device directly before these boxes. In a plan's row: all of its idle time");
    case TimelineSumsModel::BytesColumn:
      return TimelineSumsModel::tr(
          "Minimum traffic: bytes read and written, computed from tensor shapes. A partly selected box counts in "
          "proportion to its selected time");
    case TimelineSumsModel::BandwidthColumn:
      return TimelineSumsModel::tr("Minimum traffic / time, in GB/s (1e9 bytes per second)");
    default: return {};
  }
}

}  // namespace

void TimelineSumsModel::setSums(std::vector<TimelineSum> sums, double lengthNs, const QStringList& trackNames) {
  beginResetModel();
  m_sums = std::move(sums);
  m_lengthNs = std::max(lengthNs, 1.0);
  m_trackNames = trackNames;
  m_time = timeUnitFor(lengthNs);
  double largest = 0.0;
  for (const TimelineSum& sum : m_sums) largest = std::max(largest, sum.bytes.value_or(0.0));
  m_bytes = byteUnitFor(largest);
  arrange();
  endResetModel();
}

int TimelineSumsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_order.size());
}

int TimelineSumsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QString TimelineSumsModel::textOf(const TimelineSum& sum, int column) const {
  switch (column) {
    case NameColumn: return sum.isTotal() ? tr("%1 in total").arg(trackName(sum)) : sum.name;
    case PlanColumn: return m_trackNames.size() > 1 ? trackName(sum) : QString();
    case PassColumn: return sum.pass;
    case CountColumn: return QString::number(sum.count);
    case SumColumn: return formatColumnTime(sum.sumNs, m_time.size);
    case MedianColumn: return sum.isTotal() ? QString() : formatColumnTime(sum.medianNs, m_time.size);
    case ShareColumn: return QString::number(kPercent * sum.sumNs / m_lengthNs, 'f', 1);
    case IdleColumn: return toQt(m_time.timeOf(sum.idleNs));
    case BytesColumn: return sum.bytes ? toQt(m_bytes.bytesOf(std::llround(*sum.bytes))) : QString();
    case BandwidthColumn: {
      const auto bandwidth = sum.bandwidthGBps();
      return bandwidth ? formatThreeDigits(*bandwidth) : QString();
    }
    default: return {};
  }
}

/// Sort key of a row; invalid if it has none.
QVariant TimelineSumsModel::valueOf(const TimelineSum& sum, int column) const {
  const auto known = [](const std::optional<double>& value) { return value ? QVariant(*value) : QVariant(); };
  switch (column) {
    case CountColumn: return sum.count;
    case SumColumn:
    case ShareColumn: return sum.sumNs;
    case MedianColumn: return sum.medianNs;
    case IdleColumn: return sum.idleNs;
    case BytesColumn: return known(sum.bytes);
    case BandwidthColumn: return known(sum.bandwidthGBps());
    default: return textOf(sum, column);
  }
}

QVariant TimelineSumsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const TimelineSum& sum = m_sums[m_order[static_cast<std::size_t>(index.row())]];
  switch (role) {
    case Qt::DisplayRole: return textOf(sum, index.column());
    case Qt::ToolTipRole: return index.column() == NameColumn ? textOf(sum, NameColumn) : QVariant();
    case Qt::TextAlignmentRole:
      return static_cast<int>((isWords(index.column()) ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case Qt::FontRole: {
      QFont font;
      font.setBold(sum.isTotal());
      return font;
    }
    case TotalRole: return sum.isTotal();
    case OwnersRole: return sum.isTotal() ? QStringList() : sum.owners;
    case BarRole: return index.column() == SumColumn && !sum.isTotal() ? sum.sumNs / m_lengthNs : 0.0;
    default: return {};
  }
}

QVariant TimelineSumsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((isWords(section) ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  if (role == Qt::InitialSortOrderRole) return isWords(section) ? Qt::AscendingOrder : Qt::DescendingOrder;
  if (role == Qt::ToolTipRole) return tipOf(section);
  if (role != Qt::DisplayRole) return {};
  switch (section) {
    case NameColumn: return tr("In the time range");
    case PlanColumn: return tr("Plan");
    case PassColumn: return tr("Pass");
    case CountColumn: return tr("Count");
    case SumColumn: return tr("Sum (%1)").arg(unitText(m_time));
    case MedianColumn: return tr("Median (%1)").arg(unitText(m_time));
    case ShareColumn: return tr("Share (%)");
    case IdleColumn: return tr("Idle before (%1)").arg(unitText(m_time));
    case BytesColumn: return tr("Traffic (%1)").arg(unitText(m_bytes));
    case BandwidthColumn: return tr("GB/s");
    default: return {};
  }
}

/// Rows with a value, then those without, then the sums, in either direction; equal ones as they come.
void TimelineSumsModel::arrange() {
  m_order.resize(m_sums.size());
  std::iota(m_order.begin(), m_order.end(), std::size_t{0});
  if (m_sorted < 0) return;
  const auto isBefore = [this](std::size_t a, std::size_t b) {
    if (m_sums[a].isTotal() || m_sums[b].isTotal()) return !m_sums[a].isTotal() && m_sums[b].isTotal();
    const QVariant left = valueOf(m_sums[a], m_sorted);
    const QVariant right = valueOf(m_sums[b], m_sorted);
    if (!left.isValid() || !right.isValid()) return left.isValid() && !right.isValid();
    const bool isAscending = m_direction == Qt::AscendingOrder;
    if (isWords(m_sorted)) {
      const int compared = left.toString().compare(right.toString(), Qt::CaseInsensitive);
      return isAscending ? compared < 0 : compared > 0;
    }
    return isAscending ? left.toDouble() < right.toDouble() : left.toDouble() > right.toDouble();
  };
  std::ranges::stable_sort(m_order, isBefore);
}

void TimelineSumsModel::sort(int column, Qt::SortOrder order) {
  Q_EMIT layoutAboutToBeChanged();
  const std::vector<std::size_t> before = m_order;
  m_sorted = column;
  m_direction = order;
  arrange();
  for (const QModelIndex& old : persistentIndexList()) {
    const auto place = std::ranges::find(m_order, before[static_cast<std::size_t>(old.row())]);
    changePersistentIndex(old, index(static_cast<int>(place - m_order.begin()), old.column()));
  }
  Q_EMIT layoutChanged();
}

}  // namespace fuseline::ui
