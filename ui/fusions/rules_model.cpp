// The rule set as a table.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/rules_model.h"

#include "core/fusion/rule_text.h"
#include "core/plan/fusion_edits.h"
#include "ui/fusions/gain_text.h"
#include "ui/theme/format.h"

#include <algorithm>
#include <optional>

namespace fuseline::ui {

namespace {

bool isNumber(int column) { return column >= RulesModel::HitsColumn && column <= RulesModel::TimeColumn; }

bool isPredicted(int column) { return column >= RulesModel::SavesColumn && column <= RulesModel::TimeColumn; }

/// An en dash for nothing, as counts have it; empty without a model of the device.
QString timeText(const Saving& saving, const DeviceModel& device) {
  const std::optional<double> ns = predictedNs(saving, device);
  if (!ns) return {};
  return saving == Saving{} ? formatCount(0) : formatDurationNs(*ns);
}

}  // namespace

RulesModel::RulesModel(const Theme& theme, QObject* parent) : QAbstractTableModel(parent), m_theme(theme) {
  show(m_analysis, ExecutionMode::Training, PipelineDocument());
}

void RulesModel::show(std::shared_ptr<const Analysis> analysis, ExecutionMode pass, const PipelineDocument& document) {
  m_analysis = std::move(analysis);
  m_uses = ruleUses(m_analysis->report, pass);
  m_isEnabled.clear();
  m_numOffPlaces.clear();
  for (const RuleUse& use : m_uses) {
    m_isEnabled.push_back(isRuleEnabled(document, *use.rule));
    m_numOffPlaces.push_back(std::ranges::count_if(use.misses, [&](const Attempt* miss) {
      return miss->outcome == Outcome::SwitchedOff && isOffHere(document, m_analysis->graph(), *miss);
    }));
  }
  Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int RulesModel::rowOf(const QString& rule) const {
  const auto found = std::ranges::find_if(m_uses, [&](const RuleUse& use) { return toQt(use.rule->name) == rule; });
  return found == m_uses.end() ? -1 : static_cast<int>(found - m_uses.begin());
}

int RulesModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_uses.size());
}

int RulesModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QString RulesModel::stateText(int row) const {
  const RuleUse& use = this->use(row);
  if (use.standing == RuleStanding::OutsideBook) return tr("not in this rule set");
  if (use.standing == RuleStanding::OutsidePass) return tr("not in this pass");
  if (!isEnabled(row)) return use.rule->price.empty() ? tr("off") : tr("on request");
  const qsizetype numOff = m_numOffPlaces[static_cast<std::size_t>(row)];
  return numOff == 0 ? tr("on") : tr("off at %1").arg(counted(numOff, tr("place"), tr("places")));
}

QString RulesModel::cellText(int row, int column) const {
  const RuleUse& use = this->use(row);
  switch (column) {
    case NameColumn: return toQt(use.rule->name);
    case PassColumn: return toQt(listName(use.rule->pass));
    case PatternColumn: return toQt(patternText(*use.rule));
    case HitsColumn: return formatCount(static_cast<std::int64_t>(use.hits.size()));
    case MissesColumn: return formatCount(static_cast<std::int64_t>(use.misses.size()));
    case SavesColumn: return formatByteCount(use.saved().bytes);
    case LaunchesColumn: return formatCount(use.saved().launches);
    case TimeColumn: return timeText(use.saved(), m_analysis->report.device);
    case StateColumn: return stateText(row);
    default: return {};
  }
}

QVariant RulesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const RuleUse& use = this->use(index.row());
  const bool isName = index.column() == NameColumn;
  switch (role) {
    case Qt::DisplayRole: return cellText(index.row(), index.column());
    case Qt::ToolTipRole:
      return isPredicted(index.column()) ? predictionTip(m_analysis->report.device) : toQt(use.rule->summary);
    case Qt::TextAlignmentRole:
      return static_cast<int>((isNumber(index.column()) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    case Qt::CheckStateRole:
      return isName ? QVariant(isEnabled(index.row()) ? Qt::Checked : Qt::Unchecked) : QVariant();
    case Qt::ForegroundRole:
      return use.standing == RuleStanding::Tried ? QVariant() : QVariant(m_theme.colors().dimText);
    default: return {};
  }
}

/// The state follows when the document has taken the edit.
bool RulesModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::CheckStateRole || index.column() != NameColumn) return false;
  Q_EMIT switchWanted(use(index.row()).rule, value.toInt() == Qt::Checked);
  return true;
}

Qt::ItemFlags RulesModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  return index.isValid() && index.column() == NameColumn ? flags | Qt::ItemIsUserCheckable : flags;
}

QVariant RulesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((isNumber(section) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  const QStringList heads = {tr("Rule"),     tr("Pass"),         tr("Applied"), tr("Not applied"), tr("Saves"),
                             tr("Launches"), tr("Time (model)"), tr("State"),   tr("Pattern")};
  return heads[section];
}

}  // namespace fuseline::ui
