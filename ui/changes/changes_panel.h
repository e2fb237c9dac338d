// ChangesPanel: what is not as in another pipeline, row by row; each can be shown on the canvas and taken back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/changes/changes_model.h"
#include "ui/session/pipeline_comparison.h"
#include "ui/widgets/elided_label.h"

#include <QAction>
#include <QLabel>
#include <QPushButton>
#include <QSet>
#include <QTreeView>
#include <QWidget>

#include <optional>

namespace fuseline::ui {

class ChangesPanel : public QWidget {
  Q_OBJECT

 public:
  ChangesPanel(Session& session, PipelineComparison& comparison, const Theme& theme, QWidget* parent = nullptr);

  const ChangesModel& model() const { return *m_model; }
  QTreeView* view() const { return m_view; }
  QString title() const { return m_title->text(); }
  QString summary() const { return m_summary->text(); }

  /// Enabled while the current row can be taken back.
  QAction& takeBackAction() { return *m_takeBackAction; }

  /// Goes to the next change, round and round.
  void selectNext(int step);
  /// Goes to the row of a change of the document.
  void selectChange(int change);
  /// Takes the current change back, as one edit.
  void takeBackCurrent();
  /// Adds a way to begin to what is shown while nothing is compared.
  void addStart(QAction& action);

 Q_SIGNALS:
  /// The user went to a row: about these nodes, or, of what is gone, about this change.
  void shown(const QStringList& nodes, int change);
  void endWanted();

 private:
  void createPages();
  void createView();
  QWidget* createButtons();
  void refresh();
  void fill();
  void fitColumns();
  void followSelection();
  void showCurrent();
  QSet<QString> closedGroups() const;
  void refreshTakeBack();
  void refreshMeasure();
  void measureBoth();
  QString measureProblem() const;
  std::optional<MeasuredChange> measuredChange() const;
  QString takeBackProblem() const;

  Session& m_session;
  PipelineComparison& m_comparison;
  const Theme& m_theme;
  ChangesModel* m_model;
  QTreeView* m_view;
  QAction* m_takeBackAction;
  ElidedLabel* m_title;
  QLabel* m_summary;
  QWidget* m_off;  // the page while nothing is compared
  QWidget* m_on;
  QWidget* m_starts;
  QPushButton* m_previous = nullptr;
  QPushButton* m_next = nullptr;
  QPushButton* m_takeBack = nullptr;
  QPushButton* m_measure = nullptr;
  bool m_isFilling = false;
};

}  // namespace fuseline::ui
