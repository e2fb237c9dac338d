// SuggestionsPanel: edits that were tried, and after which the plan needs less; a button applies each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/suggestion_search.h"
#include "ui/theme/theme.h"

#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>
#include <QWidget>

namespace fuseline::ui {

class SuggestionsPanel : public QWidget {
  Q_OBJECT

 public:
  SuggestionsPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  const SuggestionSearch& search() const { return m_search; }

  /// No edits are tried while it is invisible; Qt does not treat a pane in a hidden tab as hidden.
  void setSeen(bool isSeen) { m_search.setWanted(isSeen); }

 private:
  void refresh();
  QString titleText() const;
  QString searchText() const;
  void addSuggestions();
  void refreshEnabled();
  QWidget* makeCard(const Suggestion& suggestion);
  QLayout* makeButtons(const Suggestion& suggestion, QWidget* card);

  Session& m_session;
  const Theme& m_theme;
  SuggestionSearch m_search;
  QLabel* m_title;
  QPushButton* m_searchButton;  // cancels the search, or begins it again
  QScrollArea* m_area;
  QWidget* m_list = nullptr;
  QVBoxLayout* m_cards = nullptr;
};

}  // namespace fuseline::ui
