// WorkerClient: the designer's end of `fuseline worker`, a process that may die without taking the document along.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/worker/protocol.h"

#include <QByteArray>
#include <QObject>
#include <QProcess>
#include <QStringList>
#include <QTimer>

namespace fuseline::ui {

/// Starts the worker with the first request and again after it has ended. All signals come on the caller's thread.
class WorkerClient : public QObject {
  Q_OBJECT

 public:
  /// command: program and arguments, such as {"/usr/bin/fuseline", "worker"} or {"ssh", "gpu-box", "fuseline", ...}.
  explicit WorkerClient(QStringList command, QObject* parent = nullptr);
  ~WorkerClient() override;

  void setCommand(QStringList command);
  const QStringList& command() const { return m_command; }
  bool isRunning() const { return m_activeId != 0; }
  /// 0 when no worker process is alive.
  qint64 processId() const { return m_process ? m_process->processId() : 0; }

  /// Whether the last failure cost the device or the worker's process; after others the worker can go on.
  bool isLost() const { return m_isLost; }

  /// The request's id is filled in. One run at a time.
  void run(RunRequest request);
  void requestDevices();
  /// Asks the worker to stop between iterations; a worker that does not answer in two seconds is ended.
  void cancel();

 Q_SIGNALS:
  void progress(const QString& stage, int done, int total);
  /// beside: of the pipeline that took turns with it; nullptr: there was none.
  void finished(const RunRecord& record, const RunRecord* beside);
  void numericsMeasured(const NumericsReport& report);
  void tensorsCaptured(const std::vector<TensorSummary>& tensors);
  /// A sentence for the user.
  void failed(const QString& sentence);
  void devicesReceived(const Json& devices);

 private:
  void ensureStarted();
  void askForDevices();
  void send(const WorkerRequest& request);
  void readEvents();
  void handleLine(const QByteArray& line);
  void handleEvent(const WorkerEvent& event);
  void handleEnd(int exitCode, QProcess::ExitStatus status);
  void handleStartError(QProcess::ProcessError error);
  void handleError(const ErrorEvent& event);
  void endWorker();
  void abandonWorker();
  enum class Loss { Nothing, Worker };
  void fail(const QString& sentence, Loss loss = Loss::Worker);
  QString lastWords();

  QStringList m_command;
  QProcess* m_process = nullptr;
  QByteArray m_buffer;
  QByteArray m_errorOutput;
  QTimer m_cancelDeadline;
  int m_activeId = 0;  // 0: no run
  int m_lastId = 0;
  bool m_isCancelling = false;
  bool m_isLost = false;
  bool m_owesDevices = false;  // somebody asked, and no worker has answered yet
};

}  // namespace fuseline::ui
