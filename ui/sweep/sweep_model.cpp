// Cells of a sweep.
// SPDX-License-Identifier: Apache-2.0
#include "ui/sweep/sweep_model.h"

#include "ui/sweep/sweep_choice.h"
#include "ui/theme/format.h"
#include "ui/widgets/tip_lines.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace fuseline::ui {

namespace {

bool isText(int column) { return column == SweepModel::RecipeColumn || column == SweepModel::NoteColumn; }

QString intervalOf(const RatioStats& ratio) {
  return QStringLiteral("%1 – %2").arg(QString::number(ratio.low, 'f', 2), QString::number(ratio.high, 'f', 2));
}

QString fromTo(const QString& from, const QString& to) {
  return from == to ? from : QStringLiteral("%1 → %2").arg(from, to);
}

/// "ForwardLinearBias, 2×", a line each; the most frequent rules first.
QString ruleLines(const std::vector<std::string>& rules) {
  std::map<std::string, int> counts;
  for (const std::string& rule : rules) ++counts[rule];
  std::vector<std::pair<std::string, int>> ordered(counts.begin(), counts.end());
  std::ranges::stable_sort(ordered, std::greater(), &std::pair<std::string, int>::second);
  QStringList lines;
  for (const auto& [rule, count] : ordered)
    lines.append(count == 1 ? toQt(rule) : SweepModel::tr("%1, %2×").arg(toQt(rule)).arg(count));
  return cappedTip(lines.join(u'\n'));
}

}  // namespace

SweepModel::SweepModel(const Theme& theme, QObject* parent) : QAbstractTableModel(parent), m_theme(theme) {}

SweepModel::Line SweepModel::lineOf(const SweepRow& row) {
  Line line{.point = row.point,
            .recipe = sweepRecipeName(row.point.recipe),
            .isMeasured = row.isMeasured(),
            .reason = toQt(row.reason)};
  if (!row.isMeasured()) return line;
  line.unfused = row.figures.unfused;
  line.fused = row.figures.fused;
  line.speedup = row.figures.speedup;
  line.unfusedPeakBytes = row.unfusedPlan().peakBytes;
  line.fusedPeakBytes = row.fusedPlan().peakBytes;
  line.unfusedLaunches = row.unfusedPlan().launches;
  line.fusedLaunches = row.fusedPlan().launches;
  line.rules = appliedRules(row.fusedPlan());
  return line;
}

void SweepModel::setResult(const SweepResult& result) {
  const QString symbol = toQt(result.sweep.axes.front().symbol);
  if (symbol != m_symbol || result.rows.size() < m_lines.size()) clear();
  m_symbol = symbol;
  m_hasRecipes = !result.sweep.recipes.empty();
  Q_EMIT headerDataChanged(Qt::Horizontal, SizeColumn, SizeColumn);
  if (result.rows.size() == m_lines.size()) return;
  beginInsertRows({}, rowCount(), static_cast<int>(result.rows.size()) - 1);
  for (std::size_t row = m_lines.size(); row < result.rows.size(); ++row) m_lines.push_back(lineOf(result.rows[row]));
  endInsertRows();
}

void SweepModel::clear() {
  beginResetModel();
  m_lines.clear();
  endResetModel();
}

bool SweepModel::hasReasons() const {
  return std::ranges::any_of(m_lines, [](const Line& line) { return !line.reason.isEmpty(); });
}

int SweepModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_lines.size());
}

int SweepModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QString SweepModel::cellText(const Line& line, int column) const {
  switch (column) {
    case SizeColumn: return QString::number(line.point.symbols.front().second);
    case RecipeColumn: return line.recipe;
    case NoteColumn: return line.reason.simplified();
    default: break;
  }
  if (!line.isMeasured) return column == UnfusedColumn ? tr("not measured") : QString();
  switch (column) {
    case UnfusedColumn: return formatTiming(line.unfused);
    case FusedColumn: return formatTiming(line.fused);
    case SpeedupColumn: return QStringLiteral("%1  (%2)").arg(formatSpeedup(line.speedup), intervalOf(line.speedup));
    case MemoryColumn: return fromTo(formatByteCount(line.unfusedPeakBytes), formatByteCount(line.fusedPeakBytes));
    case FusionsColumn: return formatCount(static_cast<std::int64_t>(line.rules.size()));
    case LaunchesColumn: return fromTo(formatCount(line.unfusedLaunches), formatCount(line.fusedLaunches));
    default: return {};
  }
}

QString SweepModel::tipText(const Line& line, int column) const {
  if (!line.isMeasured) return line.reason;
  return column == FusionsColumn ? ruleLines(line.rules) : QString();
}

/// Rows that were not measured have none, and stand together.
QVariant SweepModel::sortValue(const Line& line, int column) {
  switch (column) {
    case SizeColumn: return static_cast<qlonglong>(line.point.symbols.front().second);
    case RecipeColumn: return line.recipe;
    case UnfusedColumn: return line.unfused.median;
    case FusedColumn: return line.fused.median;
    case SpeedupColumn: return line.isMeasured ? line.speedup.median : 0.0;
    case MemoryColumn: return static_cast<qlonglong>(line.fusedPeakBytes);
    case FusionsColumn: return static_cast<qlonglong>(line.rules.size());
    case LaunchesColumn: return static_cast<qlonglong>(line.fusedLaunches);
    default: return line.reason;
  }
}

QVariant SweepModel::colorOf(const Line& line, int column) const {
  if (column == NoteColumn || !line.isMeasured) return m_theme.colors().error;
  if (column != SpeedupColumn) return {};
  if (!line.speedup.isSignificant()) return m_theme.colors().dimText;
  return line.speedup.median > 1.0 ? m_theme.colors().good : m_theme.colors().error;
}

QVariant SweepModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Line& line = this->line(index.row());
  switch (role) {
    case Qt::DisplayRole: return cellText(line, index.column());
    case Qt::ToolTipRole: return tipText(line, index.column());
    case Qt::ForegroundRole: return colorOf(line, index.column());
    case Qt::TextAlignmentRole:
      return static_cast<int>((isText(index.column()) ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case kSortRole: return sortValue(line, index.column());
    default: return {};
  }
}

QVariant SweepModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((isText(section) ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole && section == SpeedupColumn)
    return tr("Unfused / fused time, measured interleaved, with 95 % interval. ~: not statistically significant");
  if (role == Qt::ToolTipRole && section == MemoryColumn) return tr("Peak memory of the unfused and the fused plan");
  if (role == Qt::ToolTipRole && section == FusionsColumn) return tr("Number of fused steps. Tooltips name the rules");
  if (role != Qt::DisplayRole) return {};
  const QStringList heads = {m_symbol.isEmpty() ? tr("Size") : m_symbol,
                             tr("Recipe"),
                             tr("Unfused"),
                             tr("Fused"),
                             tr("Speed-up"),
                             tr("Peak memory"),
                             tr("Fusions"),
                             tr("Launches"),
                             tr("Reason why it was not measured")};
  return heads[section];
}

}  // namespace fuseline::ui
