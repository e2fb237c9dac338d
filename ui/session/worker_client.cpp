// WorkerClient: starts, talks to and outlives the worker process.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/worker_client.h"

#include "ui/theme/format.h"

#include <chrono>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr std::chrono::seconds kCancelPatience{2};
// Request number of an error about a line that is not a request to the worker, which is older than this program.
constexpr int kNoRequest = 0;
constexpr int kQuitPatienceMs = 300;
// Enough for the last sentence of a dying worker, never a whole log.
constexpr qsizetype kErrorOutputBytes = 2000;

}  // namespace

WorkerClient::WorkerClient(QStringList command, QObject* parent) : QObject(parent), m_command(std::move(command)) {
  m_cancelDeadline.setSingleShot(true);
  m_cancelDeadline.setInterval(kCancelPatience);
  connect(&m_cancelDeadline, &QTimer::timeout, this, [this] {
    endWorker();
    fail(tr("Run stopped. The run process did not respond within 2 s and was killed; the next run starts a new one."));
  });
}

WorkerClient::~WorkerClient() { endWorker(); }

void WorkerClient::setCommand(QStringList command) {
  endWorker();
  m_command = std::move(command);
}

void WorkerClient::run(RunRequest request) {
  if (isRunning()) return;
  request.id = m_activeId = ++m_lastId;
  m_isCancelling = false;
  ensureStarted();
  if (m_command.isEmpty())
    return fail(tr("No worker command is set. Pass --worker with a command, such as \"fuseline worker\"."));
  send(request);
}

void WorkerClient::requestDevices() {
  m_owesDevices = true;
  m_process ? askForDevices() : ensureStarted();
}

void WorkerClient::cancel() {
  if (!isRunning() || m_isCancelling) return;
  m_isCancelling = true;
  send(CancelRequest{.id = m_activeId});
  m_cancelDeadline.start();
}

void WorkerClient::ensureStarted() {
  if (m_process || m_command.isEmpty()) return;
  m_buffer.clear();
  m_errorOutput.clear();
  m_process = new QProcess(this);
  connect(m_process, &QProcess::readyReadStandardOutput, this, &WorkerClient::readEvents);
  connect(m_process, &QProcess::readyReadStandardError, this,
          [this] { m_errorOutput = (m_errorOutput + m_process->readAllStandardError()).right(kErrorOutputBytes); });
  connect(m_process, &QProcess::finished, this, &WorkerClient::handleEnd);
  connect(m_process, &QProcess::errorOccurred, this, &WorkerClient::handleStartError);
  m_process->start(m_command.front(), m_command.mid(1));
  askForDevices();
}

/// If a worker cannot be started, asks the next one.
void WorkerClient::askForDevices() {
  if (m_owesDevices) send(DevicesRequest{.id = ++m_lastId});
}

void WorkerClient::send(const WorkerRequest& request) {
  if (m_process) m_process->write(QByteArray::fromStdString(encode(request)) + '\n');
}

void WorkerClient::readEvents() {
  m_buffer += m_process->readAllStandardOutput();
  for (qsizetype end = m_buffer.indexOf('\n'); m_process && end >= 0; end = m_buffer.indexOf('\n')) {
    const QByteArray line = m_buffer.left(end);
    m_buffer.remove(0, end + 1);
    if (!line.trimmed().isEmpty()) handleLine(line);
  }
}

void WorkerClient::handleLine(const QByteArray& line) {
  const Result<WorkerEvent> event = decodeEvent(line.toStdString());
  if (event) return handleEvent(*event);
  if (isRunning()) abandonWorker();  // which may go on with the run that has failed here
  fail(tr("The run process sent an unexpected message: %1").arg(toQt(event.error().message)));
}

void WorkerClient::handleEvent(const WorkerEvent& event) {
  if (const auto* devices = std::get_if<DevicesEvent>(&event)) {
    m_owesDevices = false;
    Q_EMIT devicesReceived(devices->devices);
  }
  if (const auto* step = std::get_if<ProgressEvent>(&event);
      step && (step->id == m_activeId || (isRunning() && step->id == kNoRequest))) {
    Q_EMIT progress(toQt(step->stage), step->done, step->total);
  }
  if (const auto* result = std::get_if<ResultEvent>(&event); result && result->id == m_activeId) {
    m_cancelDeadline.stop();
    m_activeId = 0;
    Q_EMIT finished(result->record, result->beside ? &*result->beside : nullptr);
  }
  if (const auto* numerics = std::get_if<NumericsEvent>(&event); numerics && numerics->id == m_activeId) {
    m_cancelDeadline.stop();
    m_activeId = 0;
    Q_EMIT numericsMeasured(numerics->report);
  }
  if (const auto* captured = std::get_if<CapturedEvent>(&event); captured && captured->id == m_activeId) {
    m_cancelDeadline.stop();
    m_activeId = 0;
    Q_EMIT tensorsCaptured(captured->tensors);
  }
  const auto* error = std::get_if<ErrorEvent>(&event);
  if (error && (error->id == m_activeId || error->id == kNoRequest)) handleError(*error);
}

/// After a fault a GPU refuses everything to the process that ran into it: the next run gets another one. So it is when
/// the fault came up as the run was being cancelled.
void WorkerClient::handleError(const ErrorEvent& event) {
  if (event.error.kind == ErrorKind::RunFailed) abandonWorker();
  fail(toQt(event.error.message), event.isDeviceLost ? Loss::Worker : Loss::Nothing);
}

void WorkerClient::handleEnd(int exitCode, QProcess::ExitStatus status) {
  readEvents();
  if (!m_process) return;  // its last event was a failed run
  const QString words = lastWords();
  m_process->deleteLater();
  m_process = nullptr;
  const QString how =
      status == QProcess::CrashExit ? tr("was killed by a signal") : tr("exited with code %1").arg(exitCode);
  fail(tr("The run process %1. The pipeline is unchanged; the next run starts a new process.%2")
           .arg(how, words.isEmpty() ? QString() : tr(" Its last output: %1").arg(words)));
}

void WorkerClient::handleStartError(QProcess::ProcessError error) {
  if (error != QProcess::FailedToStart) return;
  const QString reason = m_process->errorString();
  m_process->deleteLater();
  m_process = nullptr;
  fail(tr("The run process \"%1\" could not be started: %2. Install fuseline next to the designer, or pass "
          "--worker with a command.")
           .arg(m_command.join(u' '), reason));
}

void WorkerClient::endWorker() {
  if (!m_process) return;
  m_process->disconnect(this);
  if (!isRunning()) {
    send(QuitRequest{});
    m_process->closeWriteChannel();
  }
  if (isRunning() || !m_process->waitForFinished(kQuitPatienceMs)) {
    m_process->kill();
    m_process->waitForFinished(kQuitPatienceMs);
  }
  m_process->deleteLater();
  m_process = nullptr;
}

/// Without a wait, so that it can be called while its events are read.
void WorkerClient::abandonWorker() {
  QProcess* const worker = std::exchange(m_process, nullptr);
  worker->disconnect(this);
  connect(worker, &QProcess::finished, worker, &QObject::deleteLater);
  worker->kill();
  if (worker->state() == QProcess::NotRunning) worker->deleteLater();
}

void WorkerClient::fail(const QString& sentence, Loss loss) {
  m_cancelDeadline.stop();
  if (!isRunning()) return;
  m_isLost = loss == Loss::Worker;
  m_activeId = 0;
  Q_EMIT failed(sentence);
}

QString WorkerClient::lastWords() {
  m_errorOutput += m_process->readAllStandardError();
  const QList<QByteArray> lines = m_errorOutput.trimmed().split('\n');
  return QString::fromUtf8(lines.last()).trimmed();
}

}  // namespace fuseline::ui
