// Follows the planning of a session.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/planning_note.h"

#include <QHBoxLayout>

namespace fuseline::ui {

namespace {

constexpr int kPlanningMs = 300;
constexpr int kBarWidthPx = 72;

QToolButton* buttonIn(QLayout& layout, const QString& text, const QString& tip) {
  auto* button = new QToolButton;
  button->setText(text);
  button->setToolTip(tip);
  button->setAutoRaise(true);
  button->setFocusPolicy(Qt::TabFocus);
  layout.addWidget(button);
  return button;
}

}  // namespace

PlanningNote::PlanningNote(const OpenPipeline& pipeline, const LivePlan& plan, QWidget* parent)
    : QWidget(parent),
      m_plan(plan),
      m_steps(PlanSteps::of(plan)),
      m_text(new QLabel(this)),
      m_bar(new QProgressBar(this)) {
  setObjectName(QStringLiteral("planning"));
  m_bar->setRange(0, 0);
  m_bar->setFixedWidth(kBarWidthPx);
  m_bar->setTextVisible(false);
  m_bar->setAccessibleName(tr("Planning"));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(m_text);
  layout->addWidget(m_bar);
  m_cancel = buttonIn(*layout, tr("Cancel"), tr("Keep showing the plan from before the last edit"));
  m_again = buttonIn(*layout, tr("Plan now"), tr("Plan the pipeline as it is now"));
  m_patience.setSingleShot(true);
  m_patience.setInterval(kPlanningMs);
  connect(&pipeline, &OpenPipeline::changed, &m_patience, qOverload<>(&QTimer::start));
  connect(&m_patience, &QTimer::timeout, this, &PlanningNote::refresh);
  connect(&plan, &LivePlan::analysisChanged, this, &PlanningNote::refresh);
  connect(&m_steps, &PlanSteps::neighborhoodPlanned, this, &PlanningNote::refresh);  // figures are older than fusions
  connect(&m_steps, &PlanSteps::canceled, this, &PlanningNote::refresh);
  connect(m_cancel, &QToolButton::clicked, &m_steps, &PlanSteps::cancel);
  connect(m_again, &QToolButton::clicked, this, [this] {
    m_steps.planAgain();
    refresh();
  });
  hide();
}

void PlanningNote::refresh() {
  const bool isPlanning = m_plan.isAnalysing();
  m_text->setText(isPlanning ? tr("Planning…") : tr("The plan is older than the pipeline."));
  m_bar->setVisible(isPlanning);
  m_cancel->setVisible(isPlanning);
  m_again->setVisible(!isPlanning);
  setVisible(isPlanning || m_steps.isOutdated());
}

}  // namespace fuseline::ui
