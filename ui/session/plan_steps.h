// PlanSteps: how the analysis of a session follows from the one before it, edit by edit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/plan/incremental/neighborhood.h"
#include "ui/session/live_plan.h"

#include <QObject>

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// A part of every LivePlan.
class PlanSteps : public QObject {
  Q_OBJECT

 public:
  using Ops = std::optional<std::set<std::string>>;

  static PlanSteps& of(const LivePlan& plan);
  explicit PlanSteps(LivePlan& plan);

  /// The last analysis has the plan, the problems and the tensors of the one that was emitted before it, and differs at
  /// most in the attributes of these ops; nullopt: it may differ anywhere.
  const Ops& changedOps() const { return m_changedOps; }

  /// Planning was canceled: the analysis is of the pipeline before its last edits, until the next one or planAgain().
  bool isOutdated() const { return m_isOutdated; }
  void cancel();
  void planAgain();

  /// Changes that the thread has not taken over yet: edits, after another document if there is one.
  struct Changes {
    std::optional<PipelineDocument> document = std::nullopt;
    std::vector<Edit> edits = {};
  };
  /// Called by the plan, the second one on any thread.
  void note(const OpenPipeline& pipeline);
  Changes takeChanges();
  /// The same about analyses: each one that was made, then the one that is shown.
  void noteAnalysis(const Ops& changedOps);
  void noteShown() { m_changedOps = std::exchange(m_changedSince, std::set<std::string>()); }
  void tell();
  void noteStarted() { m_isOutdated = false; }
  void forget() { m_changedSince.reset(); }

 Q_SIGNALS:
  /// As LivePlan::analysisChanged(), unless only attributes of changedOps() differ.
  void planChanged();
  /// In a large pipeline, after an edit of ops and wires: its fusions, while the plan of the rest is still made.
  void neighborhoodPlanned(const std::shared_ptr<const Neighborhood>& part);
  void canceled();
  /// Asks the plan.
  void cancelWanted();
  void planWanted();

 private:
  LivePlan& m_plan;
  std::mutex m_mutex;  // of m_waiting
  Changes m_waiting;
  Ops m_changedOps;
  Ops m_changedSince = std::set<std::string>();  // the shown analysis
  bool m_isOutdated = false;
};

}  // namespace fuseline::ui
