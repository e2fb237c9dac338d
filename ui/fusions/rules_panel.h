// RulesPanel: the rule set beside the pipeline: every rule, where it hit, and why it missed elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/fusions/rules_model.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QLabel>
#include <QTextBrowser>
#include <QTreeView>
#include <QUrl>
#include <QWidget>

namespace fuseline::ui {

class RulesPanel : public QWidget {
  Q_OBJECT

 public:
  RulesPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  RulesModel& model() { return *m_model; }
  QTreeView* view() const { return m_view; }
  /// All about the current rule. Its links select ops: "#hit0", "#miss3".
  QTextBrowser* details() const { return m_details; }
  /// Which book is used: a sentence.
  QString caption() const { return m_caption->text(); }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void createView();
  void refresh();
  void showFirstHit();
  void refreshDetails();
  QString detailsText(int row) const;
  QString placesText(const RuleUse& use) const;
  QString togetherText(const RuleUse& use) const;
  QString placeText(const Attempt& attempt, const QString& link) const;
  void followSelection();
  void follow(const QUrl& link);
  void switchRule(const FusionRule& rule, bool isEnabled);

  Session& m_session;
  const Theme& m_theme;
  RulesModel* m_model;
  QTreeView* m_view;
  QTextBrowser* m_details;
  QLabel* m_caption;
  bool m_isFresh = true;     // no rule of this pipeline was looked at yet
  bool m_isOutdated = true;  // the last analysis has not been shown yet
};

}  // namespace fuseline::ui
