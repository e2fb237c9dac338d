// Runner: runs the open pipeline in the worker's process, one request at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/last_results.h"
#include "ui/session/open_pipeline.h"
#include "ui/session/run_setup.h"
#include "ui/session/worker_client.h"

#include <QObject>
#include <QString>
#include <QStringList>
#include <QTemporaryDir>

#include <string>
#include <vector>

namespace fuseline::ui {

class Baselines;

class Runner : public QObject {
  Q_OBJECT

 public:
  Runner(const OpenPipeline& pipeline, const RunSetup& setup, LastResults& results, Baselines& baselines,
         const QStringList& workerCommand);

  /// Times both plans. One that is stopped early does not replace a complete one of the same pipeline.
  void run();
  /// Runs interleaved with another pipeline, whose run then is the reference of the baselines.
  void runBeside(const PipelineDocument& base, const QString& name);
  /// Compares both plans with float32, tensor by tensor.
  void measureNumerics();
  /// Runs the plan once and takes these tensors, or all of these ops. Errors come with failed().
  void captureTensors(const std::vector<std::string>& tensors, PlanChoice plan);
  void cancel();
  bool isRunning() const { return m_worker.isRunning() || m_isSweeping; }
  /// Request that run() sends to the worker.
  RunRequest request(RunPurpose purpose = RunPurpose::Times) const;
  /// While the worker measures the points of a sweep, its results are the sweep's alone, and nothing else is run.
  void setSweeping(bool isSweeping);
  bool isSweeping() const { return m_isSweeping; }
  /// Another document is opened: cancels the run, whose result will be dropped.
  void abandon();
  WorkerClient& worker() { return m_worker; }
  const WorkerClient& worker() const { return m_worker; }

 Q_SIGNALS:
  void started();
  void progress(const QString& stage, int done, int total);
  /// A run has ended; LastResults::lastRun() is its result, or that of a better one.
  void finished();
  /// After finished(), if the result is lastRun() now.
  void measured();
  void numericsFinished();
  void tensorsCaptured();
  void failed(const QString& sentence);
  /// A run of a closed document has ended: it was canceled with the document, and its result is dropped.
  void dropped();
  /// isRunning() may be another.
  void runningChanged();
  /// Whatever runs shall stop.
  void cancelWanted();
  void sweepingChanged();

 private:
  void start(RunRequest request);
  void finishRun(const RunRecord& record, const RunRecord* beside);
  void finishNumerics(const NumericsReport& report);
  void finishCapture(const std::vector<TensorSummary>& tensors);
  void fail(const QString& sentence);
  void pinBeside(const RunRecord& beside);

  const OpenPipeline& m_pipeline;
  const RunSetup& m_setup;
  LastResults& m_results;
  Baselines& m_baselines;
  QTemporaryDir m_captureFolder;
  int m_numCaptures = 0;
  PlanChoice m_capturedPlan = PlanChoice::Fused;
  QString m_captureFile;       // that the worker writes
  LastRun m_pending;           // what the worker is running
  bool m_isAbandoned = false;  // another document was opened since it began
  bool m_isSweeping = false;
  WorkerClient m_worker;
};

}  // namespace fuseline::ui
