// Requests to the worker, results back.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/runner.h"

#include "core/profile/run_folder.h"
#include "ui/session/baselines.h"
#include "ui/theme/format.h"

#include <QFileInfo>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

bool hasRounds(const RunRecord& record) {
  return std::ranges::any_of(record.variants, [](const VariantRecord& variant) { return !variant.endToEndNs.empty(); });
}

/// One that was stopped early does not replace a complete one of the same pipeline. Empty: it is shown.
QString whyNotShown(const RunRecord& record, const LastResults& results) {
  if (!record.isPartial) return {};
  if (!hasRounds(record)) return Runner::tr("Stopped before the first round. Nothing was measured.");
  const std::optional<LastRun>& last = results.lastRun();
  const bool isBetter = last && !last->origin && !last->record.isPartial && !last->isStale;
  return isBetter ? Runner::tr("Stopped early. The previous complete result is kept.") : QString();
}

}  // namespace

Runner::Runner(const OpenPipeline& pipeline, const RunSetup& setup, LastResults& results, Baselines& baselines,
               const QStringList& workerCommand)
    : m_pipeline(pipeline), m_setup(setup), m_results(results), m_baselines(baselines), m_worker(workerCommand) {
  connect(&m_worker, &WorkerClient::progress, this, &Runner::progress);
  connect(&m_worker, &WorkerClient::finished, this, &Runner::finishRun);
  connect(&m_worker, &WorkerClient::numericsMeasured, this, &Runner::finishNumerics);
  connect(&m_worker, &WorkerClient::tensorsCaptured, this, &Runner::finishCapture);
  connect(&m_worker, &WorkerClient::failed, this, &Runner::fail);
  for (const auto signal : {&Runner::started, &Runner::finished, &Runner::numericsFinished, &Runner::tensorsCaptured,
                            &Runner::dropped, &Runner::sweepingChanged})
    connect(this, signal, this, &Runner::runningChanged);
  connect(this, &Runner::failed, this, &Runner::runningChanged);
}

void Runner::run() { start(request(RunPurpose::Times)); }

void Runner::runBeside(const PipelineDocument& base, const QString& name) {
  RunRequest interleaved = request(RunPurpose::Times);
  interleaved.besideText = serialize(base);
  interleaved.besideName = name.toStdString();
  start(std::move(interleaved));
}

void Runner::measureNumerics() { start(request(RunPurpose::Numerics)); }

void Runner::captureTensors(const std::vector<std::string>& tensors, PlanChoice plan) {
  if (isRunning()) return;
  m_capturedPlan = plan;
  m_captureFile = m_captureFolder.filePath(QStringLiteral("%1.safetensors").arg(++m_numCaptures));
  RunRequest capture = request(RunPurpose::Capture);
  capture.variants = {plan == PlanChoice::Fused ? "fused" : "unfused"};
  capture.capture = {.tensors = tensors, .file = m_captureFile.toStdString(), .limitBytes = kCaptureLimitBytes};
  start(std::move(capture));
}

void Runner::cancel() {
  Q_EMIT cancelWanted();
  m_worker.cancel();
}

void Runner::abandon() {
  m_isAbandoned = isRunning();
  m_worker.cancel();
}

void Runner::setSweeping(bool isSweeping) {
  if (isSweeping == m_isSweeping) return;
  m_isSweeping = isSweeping;
  Q_EMIT sweepingChanged();
}

RunRequest Runner::request(RunPurpose purpose) const {
  RunRequest request{.settings = m_setup.spec(), .purpose = purpose};
  request.pipelineText = serialize(m_pipeline.document());
  request.pipelineName = m_pipeline.displayName().toStdString();
  request.settings.measuresPeaks = true;
  request.settings.rules.reset();  // the document decides
  request.tensorsFile = m_setup.tensorsFile().toStdString();
  return request;
}

void Runner::start(RunRequest request) {
  if (isRunning()) return;
  m_pending = {.document = m_pipeline.document(),
               .pass = m_setup.pass(),
               .device = m_setup.runTarget().place(),
               .source = m_setup.tensorSource()};
  m_isAbandoned = false;
  m_worker.run(std::move(request));
  Q_EMIT started();
}

void Runner::finishRun(const RunRecord& record, const RunRecord* beside) {
  if (m_isSweeping) return;
  if (m_isAbandoned) return Q_EMIT dropped();
  m_pending.record = record;
  const QString refusal = whyNotShown(record, m_results);
  if (refusal.isEmpty()) m_results.takeRun(m_pending);
  Q_EMIT finished();
  if (!refusal.isEmpty()) return Q_EMIT failed(refusal);
  Q_EMIT measured();
  if (beside) pinBeside(*beside);  // what it says is not about the run
}

/// In place of the one that took turns with the run before.
void Runner::pinBeside(const RunRecord& beside) {
  if (const Baseline* old = m_baselines.oldTurns()) m_baselines.unpin(old->slot);
  if (const Result<void> pinned = m_baselines.pin(beside); !pinned) Q_EMIT failed(toQt(pinned.error().message));
}

void Runner::finishNumerics(const NumericsReport& report) {
  if (m_isAbandoned) return Q_EMIT dropped();
  m_results.takeNumerics({.report = report,
                          .document = m_pending.document,
                          .pass = m_pending.pass,
                          .device = m_pending.device,
                          .source = m_pending.source});
  Q_EMIT numericsFinished();
}

void Runner::finishCapture(const std::vector<TensorSummary>& tensors) {
  if (m_isAbandoned) return Q_EMIT dropped();
  if (!QFileInfo::exists(m_captureFile)) {
    Q_EMIT failed(
        tr("The captured tensors are in %1 on the machine of the run and cannot be read from here. Run on that "
           "machine: fuseline run FILE --capture OP --captured OUT.safetensors")
            .arg(m_captureFile));
    return;
  }
  Result<std::shared_ptr<const CapturedFile>> file = CapturedFile::open(m_captureFile);
  if (!file) return Q_EMIT failed(toQt(file.error().message));
  m_results.takeCapture({.tensors = tensors,
                         .file = std::move(*file),
                         .plan = m_capturedPlan,
                         .document = m_pending.document,
                         .pass = m_pending.pass,
                         .device = m_pending.device,
                         .source = m_pending.source});
  Q_EMIT tensorsCaptured();
}

void Runner::fail(const QString& sentence) {
  if (m_isSweeping) return;
  m_isAbandoned ? Q_EMIT dropped() : Q_EMIT failed(sentence);
}

}  // namespace fuseline::ui
