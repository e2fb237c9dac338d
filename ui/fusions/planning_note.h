// PlanningNote: says in the status line that a plan is being made, and lets the user cancel it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/plan_steps.h"

#include <QLabel>
#include <QProgressBar>
#include <QTimer>
#include <QToolButton>
#include <QWidget>

namespace fuseline::ui {

/// Hidden unless planning takes longer than 0.3 s, or was canceled. Until a plan is there the panes show the one
/// before.
class PlanningNote : public QWidget {
  Q_OBJECT

 public:
  /// Both live as long as this.
  PlanningNote(const OpenPipeline& pipeline, const LivePlan& plan, QWidget* parent);

 private:
  void refresh();

  const LivePlan& m_plan;
  PlanSteps& m_steps;
  QLabel* m_text;
  QProgressBar* m_bar;
  QToolButton* m_cancel;
  QToolButton* m_again;
  QTimer m_patience;
};

}  // namespace fuseline::ui
