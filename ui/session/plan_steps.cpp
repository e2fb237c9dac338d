// Collects edits for the thread that analyzes, and ops for those that show the analysis.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/plan_steps.h"

#include "ui/session/last_edits.h"

namespace fuseline::ui {

PlanSteps& PlanSteps::of(const LivePlan& plan) {
  return *plan.findChild<PlanSteps*>(QString(), Qt::FindDirectChildrenOnly);
}

PlanSteps::PlanSteps(LivePlan& plan) : QObject(&plan), m_plan(plan) {}

/// The next analysis has the edits that the thread took over.
void PlanSteps::cancel() {
  if (!m_plan.isAnalysing()) return;
  m_isOutdated = true;
  Q_EMIT cancelWanted();
  Q_EMIT canceled();
}

void PlanSteps::planAgain() {
  if (m_isOutdated) Q_EMIT planWanted();
}

void PlanSteps::note(const OpenPipeline& pipeline) {
  const std::lock_guard lock(m_mutex);
  if (const auto& edits = LastEdits::of(pipeline)) {
    m_waiting.edits.insert(m_waiting.edits.end(), edits->begin(), edits->end());
    return;
  }
  m_waiting = {.document = pipeline.document()};
  forget();  // more than the plan may have changed, such as the problems of the file
}

PlanSteps::Changes PlanSteps::takeChanges() {
  const std::lock_guard lock(m_mutex);
  return std::exchange(m_waiting, {});
}

void PlanSteps::noteAnalysis(const Ops& changedOps) {
  if (m_changedSince && changedOps)
    m_changedSince->insert(changedOps->begin(), changedOps->end());
  else
    m_changedSince.reset();
}

void PlanSteps::tell() {
  if (!m_changedOps) Q_EMIT planChanged();
}

}  // namespace fuseline::ui
