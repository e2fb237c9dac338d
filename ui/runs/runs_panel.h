// RunsPanel: the runs of this pipeline, to open, compare with, note, keep and delete.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/runs/runs_model.h"
#include "ui/session/run_history.h"
#include "ui/theme/theme.h"
#include "ui/widgets/elided_label.h"

#include <QAction>
#include <QCheckBox>
#include <QLabel>
#include <QTreeView>
#include <QWidget>

namespace fuseline::ui {

class RunsPanel : public QWidget {
  Q_OBJECT

 public:
  RunsPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  RunHistory& history() { return *m_history; }
  RunsModel& model() { return *m_model; }
  QTreeView* view() const { return m_view; }
  /// Problem with the chosen file; empty if there is none.
  QString problem() const { return m_problem->text(); }

 Q_SIGNALS:
  /// Asks to open a run, which replaces the pipeline in the window.
  void openWanted(const QString& path);
  /// Asks to set the run's pipeline beside the one in the window. The run is a baseline.
  void compareWanted(const QString& path);

 private:
  void createActions();
  void createView();
  QLayout* makeHead();
  QLayout* makeFoot();
  void refresh();
  void refreshCurrent();
  void refreshKeep();
  /// The chosen run file; nullptr: none.
  const RunEntry* current() const;
  void toggleStar(int row);
  void pinCurrent();
  void deleteCurrent();
  void exportCurrent();
  void useCell(const QModelIndex& index);

  Session& m_session;
  RunHistory* m_history;
  RunsModel* m_model;
  QTreeView* m_view;
  QLabel* m_empty;
  QLabel* m_problem;
  ElidedLabel* m_place;
  QCheckBox* m_keep;
  QAction* m_open = nullptr;
  QAction* m_compare = nullptr;
  QAction* m_pin = nullptr;
  QAction* m_star = nullptr;
  QAction* m_export = nullptr;
  QAction* m_delete = nullptr;
};

}  // namespace fuseline::ui
