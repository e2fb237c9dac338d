// Screenshots for documentation and tests.
// SPDX-License-Identifier: Apache-2.0
#include "app/designer/screenshot.h"

#include "core/support/visible_text.h"

#include <QCoreApplication>
#include <QPixmap>
#include <QTextStream>
#include <QTimer>

namespace fuseline {

namespace {

// Docks and labels settle over a few turns of the event loop.
constexpr int kSettleMs = 250;
// For the list of devices; a worker that does not answer shall not keep the picture.
constexpr int kMostDevicesMs = 3000;
constexpr int kExitRunFailed = 4;

}  // namespace

Screenshot::Screenshot(ScreenshotRequest request, ui::MainWindow& window, ui::Session& session)
    : m_request(std::move(request)), m_window(window), m_session(session) {
  m_sinceStart.start();
  connect(&session.runner().worker(), &ui::WorkerClient::devicesReceived, this, [this] { m_areDevicesKnown = true; });
  connect(&session.plan(), &ui::LivePlan::analysisChanged, this, &Screenshot::handleAnalysis);
  connect(&session.runner(), &ui::Runner::finished, this, &Screenshot::takeSoon);
  connect(&session.runner(), &ui::Runner::numericsFinished, this, &Screenshot::takeSoon);
  connect(&session.runner(), &ui::Runner::tensorsCaptured, this, &Screenshot::takeSoon);
  connect(&session.runner(), &ui::Runner::failed, this, &Screenshot::fail);
}

void Screenshot::handleAnalysis() {
  if (!m_request.selection.isEmpty()) {
    ui::CanvasScope& scope = m_window.scene().scope();
    (void)scope.goTo(m_request.selection);
    if (!scope.document().findOp(m_request.selection.section(u'.', -1).toStdString()))
      return fail(tr("--select %1: the pipeline has no such op.").arg(m_request.selection));
  }
  if (!m_request.run) return takeSoon();
  if (!m_session.plan().analysis()->isRunnable()) return fail(tr("The pipeline has errors and cannot run."));
  if (m_isRunStarted) return;
  m_isRunStarted = true;
  switch (*m_request.run) {
    case RunPurpose::Times: return m_session.runner().run();
    case RunPurpose::Numerics: return m_session.runner().measureNumerics();
    case RunPurpose::Capture: m_window.lookAt(m_request.tensor);
  }
  if (!m_session.runner().isRunning()) takeSoon();  // of a tensor that is never stored there is a sentence
}

void Screenshot::takeSoon() {
  if (!m_request.pane.isEmpty() && !m_window.showPane(m_request.pane))
    return fail(tr("--pane %1: there is no such pane. Valid values: %2.")
                    .arg(m_request.pane, m_window.paneNames().join(QStringLiteral(", "))));
  QTimer::singleShot(kSettleMs, this, &Screenshot::take);
}

void Screenshot::take() {
  const bool isWaitingForDevices = !m_areDevicesKnown && m_sinceStart.elapsed() < kMostDevicesMs;
  if (m_window.comparison().isComparing() || isWaitingForDevices) return takeSoon();
  if (m_request.drawing) return draw();
  QCoreApplication::sendPostedEvents(nullptr, QEvent::LayoutRequest);
  if (!m_request.selection.isEmpty()) m_window.canvas().camera().showSelected();
  if (m_window.grab().save(m_request.outPath)) {
    QCoreApplication::exit(0);
  } else {
    fail(tr("The picture could not be written to %1.").arg(m_request.outPath));
  }
}

void Screenshot::draw() {
  const Result<void> written = ui::writeDrawing(m_session, m_window.scene(), *m_request.drawing, m_request.outPath);
  if (!written) return fail(QString::fromStdString(written.error().message));
  QCoreApplication::exit(0);
}

void Screenshot::fail(const QString& sentence) {
  QTextStream(stderr) << QString::fromStdString(visibleText(sentence.toStdString())) << '\n';
  QCoreApplication::exit(kExitRunFailed);
}

}  // namespace fuseline
