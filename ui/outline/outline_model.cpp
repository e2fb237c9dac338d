// The outline for views.
// SPDX-License-Identifier: Apache-2.0
#include "ui/outline/outline_model.h"

#include "ui/outline/node_search.h"
#include "ui/problems/problems_model.h"
#include "ui/theme/format.h"
#include "ui/timings/timings_columns.h"
#include "ui/widgets/tip_lines.h"

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

bool areTheSamePlaces(const std::vector<OutlineRow>& a, const std::vector<OutlineRow>& b) {
  return std::ranges::equal(a, b, [](const OutlineRow& left, const OutlineRow& right) {
    return left.place == right.place && left.parent == right.parent;
  });
}

}  // namespace

OutlineModel::OutlineModel(const Theme& theme, QObject* parent) : QAbstractItemModel(parent), m_theme(theme) {}

void OutlineModel::setRows(std::vector<OutlineRow> rows) {
  if (rows == m_rows) return;
  if (areTheSamePlaces(rows, m_rows)) {
    m_rows = std::move(rows);
    chooseTimeUnit();
    Q_EMIT headerDataChanged(Qt::Horizontal, TimeColumn, TimeColumn);
    return reportChange({});
  }
  beginResetModel();
  m_rows = std::move(rows);
  chooseTimeUnit();
  m_top.clear();
  m_ordinals.assign(m_rows.size(), 0);
  for (std::size_t i = 0; i < m_rows.size(); ++i) {
    if (m_rows[i].parent < 0) m_top.push_back(static_cast<int>(i));
  }
  const auto number = [&](const std::vector<int>& siblings) {
    for (std::size_t i = 0; i < siblings.size(); ++i)
      m_ordinals[static_cast<std::size_t>(siblings[i])] = static_cast<int>(i);
  };
  number(m_top);
  for (const OutlineRow& row : m_rows) number(row.parts);
  endResetModel();
}

bool OutlineModel::hasTimes() const {
  return std::ranges::any_of(m_rows, [](const OutlineRow& row) { return row.timeNs > 0; });
}

/// Not of the names, which are the same: one may just be typed over.
void OutlineModel::reportChange(const QModelIndex& parent) {
  const int numRows = rowCount(parent);
  if (numRows == 0) return;
  Q_EMIT dataChanged(index(0, OperationColumn, parent), index(numRows - 1, ColumnCount - 1, parent));
  for (int row = 0; row < numRows; ++row) reportChange(index(row, NameColumn, parent));
}

/// By the longest time.
void OutlineModel::chooseTimeUnit() {
  const auto longest = std::ranges::max_element(m_rows, {}, &OutlineRow::timeNs);
  if (longest == m_rows.end()) return;
  m_timeUnit = timeUnitFor(longest->timeNs);
}

const std::vector<int>& OutlineModel::parts(const QModelIndex& parent) const {
  return parent.isValid() ? row(parent).parts : m_top;
}

QModelIndex OutlineModel::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  return createIndex(row, column, static_cast<quintptr>(parts(parent)[static_cast<std::size_t>(row)]));
}

QModelIndex OutlineModel::parent(const QModelIndex& index) const {
  const int parent = index.isValid() ? row(index).parent : -1;
  if (parent < 0) return {};
  return createIndex(m_ordinals[static_cast<std::size_t>(parent)], NameColumn, static_cast<quintptr>(parent));
}

int OutlineModel::rowCount(const QModelIndex& parent) const {
  return parent.column() > 0 ? 0 : static_cast<int>(parts(parent).size());
}

int OutlineModel::columnCount(const QModelIndex&) const { return ColumnCount; }

QString OutlineModel::cellText(const OutlineRow& row, int column) const {
  switch (column) {
    case NameColumn: return row.name;
    case OperationColumn: return row.isBypassed ? tr("%1 (bypassed)").arg(row.operation) : row.operation;
    case OutputColumn: return row.otherOutputs.isEmpty() ? row.output : row.output + QStringLiteral(", …");
    case ForwardColumn: return row.forward;
    case BackwardColumn: return row.backward;
    case TimeColumn: return row.timeNs > 0 ? formatColumnTime(row.timeNs, m_timeUnit.size) : QString();
    case ProblemsColumn: return problemsText(row);
    default: return {};
  }
}

/// Tooltip: the full text of the cell, and the problems.
QString OutlineModel::tip(const OutlineRow& row, int column) const {
  if (column == ProblemsColumn) return cappedTip(row.problems.join(u'\n'), tr("and %1 more: see Problems"));
  if (column == OutputColumn) return outputsText(row);
  return column == TimeColumn ? tr("Time of its steps in the unfused plan, forward and backward.")
                              : cellText(row, column);
}

QVariant OutlineModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const OutlineRow& row = this->row(index);
  switch (role) {
    case Qt::DisplayRole: return cellText(row, index.column());
    case Qt::EditRole: return row.name;
    case Qt::ToolTipRole: return tip(row, index.column());
    case Qt::AccessibleTextRole:
      return index.column() == NameColumn     ? sentenceOf(row)
             : index.column() == OutputColumn ? outputsText(row)
                                              : cellText(row, index.column());
    case Qt::DecorationRole:
      return index.column() == ProblemsColumn && row.worst ? QVariant(severityIcon(m_theme, *row.worst)) : QVariant();
    case Qt::ForegroundRole: return row.isBypassed ? QVariant(m_theme.colors().dimText) : QVariant();
    case Qt::TextAlignmentRole:
      return index.column() == TimeColumn ? QVariant(Qt::AlignRight | Qt::AlignVCenter) : QVariant();
    case NodeRole: return toQt(row.node);
    case PlaceRole: return toQt(row.place);
    default: return {};
  }
}

QVariant OutlineModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return section == TimeColumn ? QVariant(Qt::AlignRight | Qt::AlignVCenter) : QVariant(Qt::AlignLeft);
  if (role != Qt::DisplayRole) return {};
  if (section == TimeColumn) return tr("Unfused (%1)").arg(unitText(m_timeUnit));
  static const char* const kTitles[] = {QT_TR_NOOP("Name"),
                                        QT_TR_NOOP("Op"),
                                        QT_TR_NOOP("Output"),
                                        QT_TR_NOOP("Forward fusion"),
                                        QT_TR_NOOP("Backward fusion"),
                                        QT_TR_NOOP("Time unfused"),
                                        QT_TR_NOOP("Problems")};
  return tr(kTitles[section]);
}

Qt::ItemFlags OutlineModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags flags = QAbstractItemModel::flags(index);
  const bool isEditable = index.isValid() && index.column() == NameColumn && row(index).parent < 0;
  return isEditable ? flags | Qt::ItemIsEditable : flags;
}

bool OutlineModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role == Qt::EditRole && (flags(index) & Qt::ItemIsEditable) && value.toString() != row(index).name)
    Q_EMIT renameRequested(toQt(row(index).node), value.toString());
  return false;
}

OutlineFilter::OutlineFilter(OutlineModel& model, QObject* parent) : QSortFilterProxyModel(parent), m_model(model) {
  setRecursiveFilteringEnabled(true);
  setAutoAcceptChildRows(true);
  setSourceModel(&model);
}

void OutlineFilter::setQuery(const QString& query) {
  m_words = searchWords(query);
  invalidateFilter();
}

bool OutlineFilter::filterAcceptsRow(int row, const QModelIndex& parent) const {
  const OutlineRow& each = m_model.row(m_model.index(row, 0, parent));
  return hasAllWords({each.name, each.operation, outputsText(each), each.forward, each.backward}, m_words);
}

}  // namespace fuseline::ui
