// The problems as a table.
// SPDX-License-Identifier: Apache-2.0
#include "ui/problems/problems_model.h"

#include "ui/theme/format.h"

#include <QHash>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <tuple>

namespace fuseline::ui {

namespace {

QString iconName(Severity severity) {
  switch (severity) {
    case Severity::Error: return QStringLiteral("error");
    case Severity::Warning: return QStringLiteral("warning");
    case Severity::Note: return QStringLiteral("note");
  }
  return QString();
}

QColor colorOf(const ThemeColors& colors, Severity severity) {
  return severity == Severity::Error ? colors.error : severity == Severity::Warning ? colors.warning : colors.note;
}

/// Place of a problem outside of nodes, named as in the inspector: "symbol M", "pipeline", "file".
QString placeOfPointer(const QString& pointer) {
  const QStringList parts = pointer.split(u'/', Qt::SkipEmptyParts);
  if (parts.isEmpty()) return ProblemsModel::tr("file");
  static const QHash<QString, const char*> kPlaces = {
      {QStringLiteral("symbols"), QT_TR_NOOP("symbol")}, {QStringLiteral("blocks"), QT_TR_NOOP("block")},
      {QStringLiteral("recipe"), QT_TR_NOOP("recipe")},  {QStringLiteral("fusion"), QT_TR_NOOP("fusion")},
      {QStringLiteral("view"), QT_TR_NOOP("view")},      {QStringLiteral("pipeline"), QT_TR_NOOP("pipeline")}};
  const auto known = kPlaces.find(parts.front());
  if (known == kPlaces.end()) return pointer;
  const QString place = ProblemsModel::tr(*known);
  const bool isNamed =
      parts.size() > 1 && (parts.front() == QStringLiteral("symbols") || parts.front() == QStringLiteral("blocks"));
  return isNamed ? place + u' ' + parts[1] : parts.size() > 1 ? pointer : place;
}

QString placeText(const Diagnostic& problem) {
  const QString node = problem.node.empty() ? placeOfPointer(toQt(problem.pointer)) : toQt(problem.node);
  const QString place = problem.port.empty() ? node : QStringLiteral("%1.%2").arg(node, toQt(problem.port));
  return problem.line > 0 ? QStringLiteral("%1 (%2:%3)").arg(place).arg(problem.line).arg(problem.column) : place;
}

}  // namespace

std::vector<Diagnostic> mergedProblems(const std::vector<Diagnostic>& fromFile,
                                       const std::vector<Diagnostic>& fromAnalysis) {
  std::vector<Diagnostic> merged = fromFile;
  std::set<std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>> said;
  const auto isNew = [&](const Diagnostic& problem) {
    return said.emplace(problem.code, problem.node, problem.port, problem.message).second;
  };
  std::ranges::for_each(fromFile, isNew);
  std::ranges::copy_if(fromAnalysis, std::back_inserter(merged), isNew);
  std::ranges::stable_sort(merged, {}, &Diagnostic::severity);
  return merged;
}

QIcon severityIcon(const Theme& theme, Severity severity) {
  return theme.icon(iconName(severity), colorOf(theme.colors(), severity));
}

ProblemsModel::ProblemsModel(const Theme& theme, QObject* parent) : QAbstractTableModel(parent), m_theme(theme) {}

void ProblemsModel::setProblems(const std::vector<Diagnostic>& fromFile, const std::vector<Diagnostic>& fromAnalysis) {
  beginResetModel();
  m_problems = mergedProblems(fromFile, fromAnalysis);
  endResetModel();
}

int ProblemsModel::count(Severity severity) const {
  return static_cast<int>(std::ranges::count(m_problems, severity, &Diagnostic::severity));
}

int ProblemsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_problems.size());
}

int ProblemsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant ProblemsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Diagnostic& problem = m_problems[static_cast<std::size_t>(index.row())];
  const bool isPlace = index.column() == PlaceColumn;
  switch (role) {
    case Qt::DisplayRole: return isPlace ? placeText(problem) : toQt(problem.message);
    case Qt::ToolTipRole: return QStringLiteral("%1 [%2]").arg(toQt(problem.message), toQt(problem.code));
    case Qt::DecorationRole: return isPlace ? QVariant(severityIcon(m_theme, problem.severity)) : QVariant();
    case Qt::AccessibleTextRole:
      return QStringLiteral("%1: %2").arg(toQt(severityName(problem.severity)),
                                          isPlace ? placeText(problem) : toQt(problem.message));
    default: return {};
  }
}

QVariant ProblemsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == PlaceColumn ? tr("Where") : tr("Problem");
}

}  // namespace fuseline::ui
