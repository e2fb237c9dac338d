// Snapshots of the document to a thread, analyses back.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/live_plan.h"

#include "core/edit/apply_edit.h"
#include "core/runtime/pipeline_run.h"
#include "ui/session/blank_pipeline.h"
#include "ui/session/last_edits.h"
#include "ui/session/live_analysis.h"
#include "ui/session/plan_steps.h"
#include "ui/session/planning/near_plan.h"

#include <QFileInfo>

#include <utility>

namespace fuseline::ui {

LivePlan::LivePlan(const OpenPipeline& pipeline, const RunSetup& setup, LastResults& results,
                   CapabilitiesOf capabilitiesOf)
    : m_pipeline(pipeline),
      m_setup(setup),
      m_results(results),
      m_capabilitiesOf(std::move(capabilitiesOf)),
      m_liveAnalysis(std::make_unique<LiveAnalysis>()),
      m_nearPlan(std::make_unique<NearPlan>()) {
  auto* const steps = new PlanSteps(*this);
  connect(steps, &PlanSteps::planWanted, this, &LivePlan::restart);
  connect(steps, &PlanSteps::cancelWanted, this, [this] {
    m_stop.request_stop();
    m_analysedGeneration = ++m_generation;
  });
  refreshCapabilities();
  // One thread: analyses of one document are only ever superseded, never needed at the same time.
  m_pool.setMaxThreadCount(1);
  connect(&pipeline, &OpenPipeline::changed, this, &LivePlan::followPipeline);
  for (const auto signal : {&RunSetup::passChanged, &RunSetup::deviceChanged, &RunSetup::planTargetChanged,
                            &RunSetup::ranksChanged, &RunSetup::optimizerChanged})
    connect(&setup, signal, this, &LivePlan::planAnew);
  connect(&results, &LastResults::runTaken, this, &LivePlan::followRun);
}

LivePlan::~LivePlan() {
  m_stop.request_stop();
  m_nearPlan->waitForDone();
  m_pool.waitForDone();
}

void LivePlan::forget() {
  m_analysis = std::make_shared<const Analysis>();
  PlanSteps::of(*this).forget();
  m_isForgotten = true;
  ++m_numPlannings;
}

void LivePlan::followPipeline() {
  m_isForgotten = false;
  PlanSteps::of(*this).note(m_pipeline);
  m_nearPlan->noteChange(m_generation + 1, LastEdits::of(m_pipeline));
  restart();
}

/// From here on fusions are planned for the run target, not for the device of an opened run.
void LivePlan::followRun(const LastRun& run) {
  takeGains(run);
  planAnew();
}

/// The plan stays what it was: what runs measured becomes a choice only where the user switches a fusion.
void LivePlan::takeGains(const LastRun& run) {
  RunGains gains = *m_gains;
  gains.take(run.record, run.origin ? QFileInfo(run.origin->file).fileName().toStdString() : "the last run");
  m_gains = std::make_shared<const RunGains>(std::move(gains));
}

AnalysisOptions LivePlan::options() const {
  AnalysisOptions options{.lowering = {.pass = m_setup.pass()}, .capabilities = m_capabilities};
  options.capability = parseCapability(plannedDevice().architecture);
  options.lowering.optimizer = m_setup.optimizer();
  options.place = rankPlace(m_setup.spec(), !plannedDevice().isGpu() && m_setup.planTarget() == PlanTarget());
  if (m_setup.planTarget().architecture.empty()) return options;
  options.capabilities =
      m_capabilitiesOf ? plannedCapabilities(m_capabilitiesOf(m_setup.planTarget().architecture)) : Capabilities();
  options.capability = parseCapability(m_setup.planTarget().architecture);
  return options;
}

/// As far as figures of runs depend on them.
RunSpec LivePlan::plannedSettings() const {
  return {.device = plannedDevice().device, .pass = m_setup.pass(), .ranks = m_setup.ranks()};
}

RunTarget LivePlan::plannedDevice() const {
  const LastRun* const opened = m_results.openedRun();
  if (!opened) return m_setup.runTarget();
  return {.device = opened->device, .architecture = opened->record.fact("architecture")};
}

void LivePlan::refreshCapabilities() {
  const std::string device = plannedDevice().device;
  if (device == std::exchange(m_device, device)) return;
  if (m_capabilitiesOf) m_capabilities = m_capabilitiesOf(device);
}

std::function<AnalysisOptions(const PipelineDocument&)> LivePlan::withGains(AnalysisOptions options) const {
  const bool isPlannedForElsewhere = m_setup.planTarget() != PlanTarget();
  auto gains = isPlannedForElsewhere ? std::make_shared<const RunGains>() : m_gains;
  return [options = std::move(options), gains = std::move(gains),
          settings = plannedSettings()](const PipelineDocument& document) {
    AnalysisOptions complete = options;
    complete.gains = gains->gainsFor(document, settings);
    return complete;
  };
}

std::function<AnalysisOptions()> LivePlan::optionsFor(const PipelineDocument& document) const {
  return [document, options = withGains(options())] { return options(document); };
}

std::function<std::shared_ptr<const Analysis>()> LivePlan::analysisOf(const PipelineDocument& document) const {
  return [document, options = withGains(options())] { return analyzeToShow(document, options(document)); };
}

void LivePlan::planAnew() {
  ++m_numPlannings;
  m_nearPlan->noteChange(m_generation + 1, std::nullopt);
  restart();
}

namespace {

std::shared_ptr<const Analysis> analyzeChanges(LiveAnalysis& analyses, PlanSteps::Changes changes,
                                               const OptionsFor& optionsFor, std::uint64_t plans,
                                               const std::stop_token& stop) {
  if (!changes.document) return analyses.after(changes.edits, optionsFor, plans, stop);
  for (const Edit& edit : changes.edits) (void)applyEdit(*changes.document, edit);
  return analyses.next(std::move(*changes.document), optionsFor, plans, stop);
}

}  // namespace

/// A planning that this one supersedes ends at its next stage: its changes are left to this one.
void LivePlan::restart() {
  ++m_generation;
  PlanSteps& steps = PlanSteps::of(*this);
  steps.noteStarted();
  refreshCapabilities();
  if (m_isForgotten) return;
  m_stop.request_stop();
  m_stop = {};
  const auto take = [this, &steps, generation = m_generation](Neighborhood part) {
    auto shared = std::make_shared<const Neighborhood>(std::move(part));
    const auto tell = [this, &steps, generation, shared = std::move(shared)] {
      if (generation == m_generation) Q_EMIT steps.neighborhoodPlanned(shared);
    };
    QMetaObject::invokeMethod(this, tell, Qt::QueuedConnection);
  };
  AnalysisOptions current = options();
  const auto plan = [this, &steps, optionsFor = withGains(current), generation = m_generation, plans = m_numPlannings,
                     stop = m_stop.get_token()] {
    if (stop.stop_requested()) return;
    auto analysis = analyzeChanges(*m_liveAnalysis, steps.takeChanges(), optionsFor, plans, stop);
    if (!analysis) return;
    const PipelineDocument& planned = m_liveAnalysis->document();
    NearPlan::Savings savings{{plans, planned.recipe(), planned.fusion()}, m_liveAnalysis->knownSavings()};
    const auto post = [this, &steps, generation, analysis = std::move(analysis), ops = m_liveAnalysis->changedOps(),
                       savings = std::move(savings)] {
      steps.noteAnalysis(ops);
      if (generation == m_generation) m_nearPlan->noteAnalysis(generation, analysis, savings);
      accept(generation, analysis);
    };
    QMetaObject::invokeMethod(this, post, Qt::QueuedConnection);
  };
  m_nearPlan->start(m_pipeline.document(), std::move(current), m_numPlannings, m_stop.get_token(), take,
                    [this, plan] { m_pool.start(plan); });
}

void LivePlan::accept(quint64 generation, std::shared_ptr<const Analysis> analysis) {
  if (generation != m_generation) return;
  std::shared_ptr<const Analysis> earlier = std::exchange(m_analysis, std::move(analysis));
  m_analysedGeneration = generation;
  m_results.setDifferingSteps(*m_analysis);
  PlanSteps& steps = PlanSteps::of(*this);
  steps.noteShown();
  Q_EMIT analysisChanged(m_analysis);
  steps.tell();
  m_pool.start([earlier = std::move(earlier)] {});  // there a large one is deleted, which takes a while
  // Panes that are seen ask for it a moment later.
  m_pool.start([shown = m_analysis, stop = m_stop.get_token()] {
    if (shown->isRunnable()) shown->withoutFusions->prepare(shown->graph(), stop);
  });
}

}  // namespace fuseline::ui
