// FusionsPanel: for the selected op, which fusions apply, which do not and why, and what would make them apply.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/fusions/attempt_list.h"
#include "ui/fusions/fusion_card.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QHash>
#include <QLabel>
#include <QScrollArea>
#include <QSet>
#include <QVBoxLayout>
#include <QWidget>

#include <memory>
#include <vector>

namespace fuseline::ui {

class FusionsPanel : public QWidget {
  Q_OBJECT

 public:
  FusionsPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);

 private:
  void refresh();
  void addAttempts();
  void addSentence(const QString& sentence);
  void addCards(const std::vector<const Attempt*>& attempts);
  void addSlowerNote(const AttemptList& list);
  void addDistantNote(const AttemptList& list);
  QWidget* makeCard(const InstanceAttempts& attempts);
  void addGroup(const QString& name, const std::vector<InstanceAttempts>& attempts);
  FusionGroup shownGroup(const Attempt& attempt);
  QString titleText() const;

  Session& m_session;
  const Theme& m_theme;
  QLabel* m_title;
  QScrollArea* m_area;
  std::shared_ptr<const Analysis> m_analysis;  // that the cards are of
  QWidget* m_list = nullptr;
  QVBoxLayout* m_cards = nullptr;
  bool m_showsDistant = false;
  QHash<QString, FusionGroup> m_groups;  // of attempts as they were first shown for this selection
  QSet<QString> m_open;
};

}  // namespace fuseline::ui
