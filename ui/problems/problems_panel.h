// ProblemsPanel: every problem at once; click to go there, press a button to repair it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/problems/problems_model.h"
#include "ui/session/session.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QTreeView>
#include <QWidget>

namespace fuseline::ui {

class ProblemsPanel : public QWidget {
  Q_OBJECT

 public:
  ProblemsPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  const ProblemsModel& model() const { return *m_model; }
  QTreeView* view() const { return m_view; }
  /// Goes to the next problem, round and round.
  void selectNext(int step);
  void selectFirst();

 Q_SIGNALS:
  /// A problem of this node of the pipeline was chosen.
  void nodeWanted(const QString& node);
  /// One inside of this instance was.
  void insideWanted(const QString& instance, const QString& pointer);
  void countsChanged(int numErrors, int numWarnings);
  /// Asks for the explanation of a problem code.
  void explanationWanted(const QString& code);

 private:
  void refresh();
  void showCurrent();
  void goToCurrent();
  void showFirstRepairs();
  void showRepairs(const Diagnostic& problem);
  std::size_t numFixable() const;
  void showFixAll();
  void clearDetails();

  Session& m_session;
  ProblemsModel* m_model;
  QTreeView* m_view;
  QLabel* m_empty;
  QWidget* m_details;
  QLabel* m_sentence;
  QHBoxLayout* m_buttons;
  bool m_isRefreshing = false;
  bool m_isOffered = false;  // the current row was not chosen by the user
};

}  // namespace fuseline::ui
