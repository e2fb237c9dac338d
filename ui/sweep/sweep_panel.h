// SweepPanel: measures the pipeline at many sizes and under several recipes, and shows from where on fusing pays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/sweep_session.h"
#include "ui/sweep/recipe_choice.h"
#include "ui/sweep/sweep_chart.h"
#include "ui/sweep/sweep_model.h"

#include <QAction>
#include <QComboBox>
#include <QHash>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QTreeView>
#include <QWidget>

#include <optional>

namespace fuseline::ui {

class SweepPanel : public QWidget {
  Q_OBJECT

 public:
  SweepPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  SweepSession& sweep() { return *m_sweep; }
  SweepChart* chart() const { return m_chart; }
  QTreeView* view() const { return m_view; }
  SweepModel& model() { return *m_model; }
  RecipeChoice* recipeChoice() const { return m_recipes; }
  /// Number of points, or the reason why the choice cannot be measured.
  QString planText() const { return m_plan->text(); }
  /// How it goes or went, and whether it is still of this pipeline.
  QString stateText() const { return m_state->text(); }
  /// From where on fusing pays.
  QString summary() const { return m_summary->text(); }

 Q_SIGNALS:
  /// Asks to open a run, which replaces the pipeline in the window.
  void openWanted(const QString& path);
  void message(const QString& sentence);

 protected:
 private:
  QLayout* makeChoices();
  QLayout* makeState();
  QWidget* makeResult();
  void orderTabs();
  void createActions();
  void createView();
  void follow();

  /// The chosen sweep; nullopt if it cannot be measured (refreshPlan() shows the reason).
  std::optional<ShapeSweep> chosenSweep() const;
  QString whyNot() const;
  void refreshChoices();
  void showSizes();
  void refreshPlan();
  void refreshResult();
  void refreshState();
  void refreshPlot();
  void refreshActions();
  void start();
  void makeSymbol();
  std::optional<std::size_t> currentRow() const;
  void chooseRow(std::size_t row);
  void openRow(std::size_t row);
  void saveCsv();
  void copyCommand();

  Session& m_session;
  const Theme& m_theme;
  SweepSession* m_sweep;
  SweepModel* m_model;
  QSortFilterProxyModel* m_sorted;
  QComboBox* m_symbol;
  QLineEdit* m_sizes;
  RecipeChoice* m_recipes;
  QLabel* m_plan;
  QPushButton* m_start;
  QPushButton* m_stop;
  QLabel* m_state;
  QProgressBar* m_progress;
  QComboBox* m_quantity;
  QSplitter* m_result;
  SweepChart* m_chart;
  QTreeView* m_view;
  QLabel* m_summary;
  QLabel* m_empty;
  QAction* m_open = nullptr;
  QAction* m_save = nullptr;
  QAction* m_copyCommand = nullptr;
  QHash<QString, QString> m_typedSizes;  // by the symbol
};

}  // namespace fuseline::ui
