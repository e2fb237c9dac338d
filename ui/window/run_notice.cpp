// Desktop notifications about runs.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/run_notice.h"

#include "ui/runs/measured_examples.h"

#include <utility>

namespace fuseline::ui {

RunNotice::RunNotice(Session& session, QWidget& window, Desktop& desktop, std::chrono::milliseconds longTime,
                     QObject* parent)
    : QObject(parent), m_session(session), m_window(window), m_desktop(desktop), m_longTime(longTime) {
  connect(&session, &Session::runFailed, this, [this](const QString& sentence) { end(sentence); });
  connect(&session, &Session::measured, this, [this] { end(summaryOfRun()); });
  connect(
      &session, &Session::runFinished, this, [this] { end(tr("Run complete.")); }, Qt::QueuedConnection);
  connect(&session, &Session::numericsFinished, this, [this] { end(tr("Numerics measured.")); });
  connect(&session, &Session::tensorsCaptured, this, [this] { end(tr("Tensors captured.")); });
  connect(&session, &Session::sweepingChanged, this,
          [this] { m_session.isSweeping() ? begin() : end(tr("Sweep complete.")); });
  connect(&session, &Session::runDropped, this, &RunNotice::drop);
  connect(&session, &Session::runStarted, this, &RunNotice::begin);
  connect(&session, &Session::runProgress, this, &RunNotice::showProgress);
  connect(&desktop, &Desktop::activated, &window, [&window] {
    window.show();
    window.raise();
    window.activateWindow();
  });
}

void RunNotice::begin() {
  if (!m_session.isRunning()) return;  // it has failed already
  m_since.start();
  m_percent = 0;
  m_isBusy = true;
  m_desktop.stayAwake(true, tr("A pipeline is being measured"));
}

/// A sweep is over when all its runs are.
void RunNotice::end(const QString& outcome) {
  if (!m_isBusy || m_session.isRunning()) return;
  drop();
  if (m_since.hasExpired(m_longTime.count()) && !m_window.isActiveWindow())
    m_desktop.notify(m_session.displayName(), outcome);
}

void RunNotice::drop() {
  m_isBusy = false;
  m_desktop.stayAwake(false, {});
  m_desktop.showProgress(std::nullopt);
}

/// Only whole percents, so that the bus stays quiet. The duration of a sweep's points is unknown.
void RunNotice::showProgress(const QString&, int done, int total) {
  if (!m_isBusy || m_session.isSweeping() || total <= 0) return;
  const int percent = 100 * done / total;
  if (percent == std::exchange(m_percent, percent)) return;
  m_desktop.showProgress(percent / 100.0);
}

QString RunNotice::summaryOfRun() const {
  return m_session.lastRun() ? summaryOf(m_session.lastRun()->record) : tr("Run complete.");
}

}  // namespace fuseline::ui
