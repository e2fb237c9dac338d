// Cells of the history of runs.
// SPDX-License-Identifier: Apache-2.0
#include "ui/runs/runs_model.h"

#include "core/profile/run_command.h"
#include "ui/runs/run_notes.h"
#include "ui/theme/format.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

bool isTimeColumn(int column) { return column >= RunsModel::UnfusedColumn && column <= RunsModel::SpeedupColumn; }

QString fileName(const RunEntry& entry) { return toQt(entry.file.filename().string()); }

}  // namespace

RunsModel::RunsModel(const Theme& theme, QObject* parent) : QAbstractTableModel(parent), m_theme(theme) {}

void RunsModel::setEntries(const std::vector<RunEntry>& entries,
                           const std::function<RunStanding(const RunEntry&)>& standingOf) {
  removeOthers(entries);
  for (std::size_t row = 0; row < entries.size(); ++row) putAt(static_cast<int>(row), entries[row]);
  for (std::size_t row = 0; row < entries.size(); ++row) m_standings[row] = standingOf(entries[row]);
  if (!entries.empty()) refreshFacts();
}

/// All but the notes: a field that is typed into would begin anew.
void RunsModel::refreshFacts() {
  Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, NoteColumn - 1));
  Q_EMIT dataChanged(index(0, NoteColumn + 1), index(rowCount() - 1, ColumnCount - 1));
}

void RunsModel::removeOthers(const std::vector<RunEntry>& entries) {
  for (int row = rowCount() - 1; row >= 0; --row) {
    if (std::ranges::find(entries, entry(row).file, &RunEntry::file) == entries.end()) takeAway(row);
  }
}

void RunsModel::takeAway(int row) {
  beginRemoveRows({}, row, row);
  m_entries.erase(m_entries.begin() + row);
  m_standings.erase(m_standings.begin() + row);
  endRemoveRows();
}

/// One that stands further below, because its date was not known before, is taken from there.
void RunsModel::putAt(int row, const RunEntry& entry) {
  const int old = rowOf(entry.file);
  if (old == row) return replace(row, entry);
  if (old >= 0) takeAway(old);
  beginInsertRows({}, row, row);
  m_entries.insert(m_entries.begin() + row, entry);
  m_standings.insert(m_standings.begin() + row, RunStanding());
  endInsertRows();
}

void RunsModel::replace(int row, const RunEntry& entry) {
  RunEntry& old = m_entries[static_cast<std::size_t>(row)];
  const bool isSameNote = old.note == entry.note;
  old = entry;
  if (!isSameNote) Q_EMIT dataChanged(index(row, NoteColumn), index(row, NoteColumn));
}

int RunsModel::rowOf(const std::filesystem::path& file) const {
  const auto found = std::ranges::find(m_entries, file, &RunEntry::file);
  return found == m_entries.end() ? -1 : static_cast<int>(found - m_entries.begin());
}

int RunsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_entries.size());
}

int RunsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

/// What one must know before comparing it.
QString RunsModel::stateText(int row) const {
  const RunEntry& entry = this->entry(row);
  if (!entry.problem.empty()) return toQt(entry.problem);
  QStringList parts = {toQt(entry.summary->settings.label)};
  const QString overrides = overridesText(*entry.summary);
  const RunStanding standing = m_standings[static_cast<std::size_t>(row)];
  if (!standing.baseline.isEmpty()) parts.append(tr("baseline %1").arg(standing.baseline));
  if (!standing.isOfThisState) parts.append(tr("another state of the pipeline"));
  if (!overrides.isEmpty()) parts.append(overrides);
  if (entry.summary->isPartial) parts.append(tr("stopped early"));
  parts.removeAll(QString());
  return parts.join(QStringLiteral(", "));
}

/// With the line that makes it again in a shell.
QString RunsModel::stateTip(int row) const {
  const RunEntry& entry = this->entry(row);
  const QString state = stateText(row);
  if (!entry.problem.empty()) return state;
  const RunSummary& summary = *entry.summary;
  RunSpec settings = summary.settings;
  if (summary.hasOwnRecipe) {  // which the file has, with its fields
    settings.recipe.clear();
    settings.recipeFields.clear();
  }
  const std::string command = repeatCommand(settings, summary.switches, summary.title + ".fuseline");
  return (state.isEmpty() ? QString() : state + u'\n') + tr("To repeat it: %1").arg(toQt(command));
}

QString RunsModel::summaryText(const RunSummary& summary, int column) const {
  switch (column) {
    case RecipeColumn: return summary.settings.recipe == "None" ? tr("No quantization") : toQt(summary.settings.recipe);
    case PassColumn: return toQt(nameOf(summary.settings.pass));
    case DeviceColumn: return toQt(summary.device);
    case UnfusedColumn: return formatTiming(summary.unfused);
    case FusedColumn: return formatTiming(summary.fused);
    case SpeedupColumn: return summary.hasBoth() ? formatSpeedup(summary.speedup) : QString();
    default: return {};
  }
}

QString RunsModel::cellText(int row, int column) const {
  const RunEntry& entry = this->entry(row);
  const bool isDated = entry.summary && !entry.summary->measuredAt.empty();
  switch (column) {
    case StarColumn: return entry.note.isStarred ? QStringLiteral("★") : QStringLiteral("☆");
    case WhenColumn: return isDated ? localTimeOf(entry.summary->measuredAt) : fileName(entry);
    case NoteColumn: return toQt(entry.note.text);
    case StateColumn: return stateText(row);
    default: return entry.summary ? summaryText(*entry.summary, column) : QString();
  }
}

QVariant RunsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const RunEntry& entry = this->entry(index.row());
  switch (role) {
    case Qt::EditRole:
    case Qt::DisplayRole: return cellText(index.row(), index.column());
    case Qt::ToolTipRole:
      if (index.column() == StateColumn) return stateTip(index.row());
      return index.column() == WhenColumn && entry.summary
                 ? zonedTimeOf(entry.summary->measuredAt) + u'\n' + toQt(entry.file.string())
                 : toQt(entry.file.string());
    case Qt::AccessibleTextRole:
      if (index.column() == StarColumn) return entry.note.isStarred ? tr("starred") : tr("not starred");
      return cellText(index.row(), index.column());
    case Qt::TextAlignmentRole:
      return static_cast<int>((isTimeColumn(index.column()) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    case Qt::ForegroundRole:
      return entry.problem.empty() || index.column() != StateColumn ? QVariant() : QVariant(m_theme.colors().error);
    default: return {};
  }
}

/// The table follows when the note is on the disk.
bool RunsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || !(flags(index) & Qt::ItemIsEditable)) return false;
  RunNote note = entry(index.row()).note;
  note.text = value.toString().trimmed().toStdString();
  Q_EMIT noteWanted(RunEntry(entry(index.row())), note);
  return true;
}

/// There is nothing to note of what is no run.
Qt::ItemFlags RunsModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  const bool isEditable = index.isValid() && index.column() == NoteColumn && entry(index.row()).summary.has_value();
  return isEditable ? flags | Qt::ItemIsEditable : flags;
}

QVariant RunsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((isTimeColumn(section) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  const QStringList heads = {tr("★"),      tr("Measured"), tr("Note"),  tr("Recipe"),   tr("Pass"),
                             tr("Device"), tr("Unfused"),  tr("Fused"), tr("Speed-up"), tr("State")};
  return heads[section];
}

}  // namespace fuseline::ui
