// WhyNotPanel: for the selected op, which fusions apply, which do not and why, and what would make them apply.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/fusions/attempt_list.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>
#include <QWidget>

namespace fuseline::ui {

class WhyNotPanel : public QWidget {
  Q_OBJECT

 public:
  WhyNotPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);

 private:
  void refresh();
  void addAttempts();
  void addSentence(const QString& sentence);
  void addCards(const std::vector<const Attempt*>& attempts);
  void addSlowerNote(const AttemptList& list);
  void addDistantNote(const AttemptList& list);
  QWidget* makeCard(const Attempt& attempt);
  QLabel* makeGain(const QString& text, const QString& tip, QWidget* card) const;
  QLayout* makeCardHead(const Attempt& attempt, QWidget* card);
  QLayout* makeCardButtons(const Attempt& attempt, QWidget* card);
  QString titleText() const;

  Session& m_session;
  const Theme& m_theme;
  QLabel* m_title;
  QScrollArea* m_area;
  QWidget* m_list = nullptr;
  QVBoxLayout* m_cards = nullptr;
  bool m_showsDistant = false;
};

}  // namespace fuseline::ui
