// RulesModel: the rule set in the order in which rules are tried, with what each did in this pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule_uses.h"
#include "core/plan/analysis.h"
#include "ui/theme/theme.h"

#include <QAbstractTableModel>

#include <memory>
#include <vector>

namespace fuseline::ui {

class RulesModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column {
    NameColumn,
    PassColumn,
    HitsColumn,
    MissesColumn,
    SavesColumn,
    LaunchesColumn,
    TimeColumn,
    StateColumn,
    PatternColumn,
    ColumnCount
  };
  explicit RulesModel(const Theme& theme, QObject* parent = nullptr);

  /// The rows stay the same rules; what they say changes.
  void show(std::shared_ptr<const Analysis> analysis, ExecutionMode pass, const PipelineDocument& document);
  /// The last one shown, which the attempts belong to.
  const Analysis& analysis() const { return *m_analysis; }
  /// One a row.
  const RuleUse& use(int row) const { return m_uses[static_cast<std::size_t>(row)]; }
  /// Predicted saving of all hits together.
  Saving saved() const { return savedBy(m_uses); }
  bool isEnabled(int row) const { return m_isEnabled[static_cast<std::size_t>(row)]; }
  /// -1: there is no such rule.
  int rowOf(const QString& rule) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 Q_SIGNALS:
  /// Somebody ticked a rule, or took the tick away.
  void switchWanted(const fuseline::FusionRule* rule, bool isEnabled);

 private:
  QString cellText(int row, int column) const;
  QString stateText(int row) const;

  const Theme& m_theme;
  std::shared_ptr<const Analysis> m_analysis = std::make_shared<const Analysis>();
  std::vector<RuleUse> m_uses;
  std::vector<bool> m_isEnabled;
  std::vector<qsizetype> m_numOffPlaces;  // where a rule is off at single places only
};

}  // namespace fuseline::ui
