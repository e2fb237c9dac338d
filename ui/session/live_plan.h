// LivePlan: the analysis of the open pipeline, made again after each change, on a thread beside the window's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "ui/session/last_results.h"
#include "ui/session/open_pipeline.h"
#include "ui/session/run_gains.h"
#include "ui/session/run_setup.h"

#include <QObject>
#include <QThreadPool>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace fuseline::ui {

class LiveAnalysis;
class NearPlan;

/// Kernels that a device has, so that plans can run there. Empty function or result: every kernel is assumed to exist.
using CapabilitiesOf = std::function<Capabilities(const std::string& deviceId)>;

class LivePlan : public QObject {
  Q_OBJECT

 public:
  LivePlan(const OpenPipeline& pipeline, const RunSetup& setup, LastResults& results, CapabilitiesOf capabilitiesOf);
  ~LivePlan() override;

  /// The last finished analysis; never null. It may be one edit behind the document.
  const std::shared_ptr<const Analysis>& analysis() const { return m_analysis; }
  bool isAnalysing() const { return m_analysedGeneration != m_generation; }
  /// Analyses a document, on any thread, as the session's own is analysed now: for the same device, pass and ranks.
  std::function<std::shared_ptr<const Analysis>()> analysisOf(const PipelineDocument& document) const;
  /// The options of that, to be called on any thread.
  std::function<AnalysisOptions()> optionsFor(const PipelineDocument& document) const;
  /// The same without the gains that runs measured.
  AnalysisOptions options() const;
  const CapabilitiesOf& capabilitiesOf() const { return m_capabilitiesOf; }

  /// Another document is opened: nothing is planned until it changes the pipeline.
  void forget();
  /// Tells the gains of this run from then on.
  void takeGains(const LastRun& run);

 Q_SIGNALS:
  void analysisChanged(const std::shared_ptr<const Analysis>& analysis);

 private:
  RunSpec plannedSettings() const;
  /// Device of the run target, or of an opened run.
  RunTarget plannedDevice() const;
  void refreshCapabilities();
  /// With the gains that runs measured of the document.
  std::function<AnalysisOptions(const PipelineDocument&)> withGains(AnalysisOptions options) const;
  void followPipeline();
  void followRun(const LastRun& run);
  /// With other settings than before.
  void planAnew();
  void restart();
  void accept(quint64 generation, std::shared_ptr<const Analysis> analysis);

  const OpenPipeline& m_pipeline;
  const RunSetup& m_setup;
  LastResults& m_results;
  CapabilitiesOf m_capabilitiesOf;
  Capabilities m_capabilities;  // of m_device
  std::string m_device;
  std::shared_ptr<const Analysis> m_analysis = std::make_shared<const Analysis>();
  // Counts what the plan depends on; a result with an older number is dropped.
  quint64 m_generation = 0;
  quint64 m_analysedGeneration = 0;
  std::uint64_t m_numPlannings = 0;              // with other settings each
  std::unique_ptr<LiveAnalysis> m_liveAnalysis;  // used by the thread of m_pool alone
  std::unique_ptr<NearPlan> m_nearPlan;
  std::stop_source m_stop;  // of the last planning
  bool m_isForgotten = false;
  std::shared_ptr<const RunGains> m_gains = std::make_shared<const RunGains>();
  QThreadPool m_pool;
};

}  // namespace fuseline::ui
