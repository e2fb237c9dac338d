// Desktop notifications about runs.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/run_notice.h"

#include "ui/runs/measured_examples.h"

#include <utility>

namespace fuseline::ui {

RunNotice::RunNotice(Session& session, QWidget& window, Desktop& desktop, std::chrono::milliseconds longTime,
                     QObject* parent)
    : QObject(parent), m_session(session), m_window(window), m_desktop(desktop), m_longTime(longTime) {
  connect(&session.runner(), &Runner::failed, this, [this](const QString& sentence) { end(sentence); });
  connect(&session.runner(), &Runner::measured, this, [this] { end(summaryOfRun()); });
  connect(
      &session.runner(), &Runner::finished, this, [this] { end(tr("Run complete.")); }, Qt::QueuedConnection);
  connect(&session.runner(), &Runner::numericsFinished, this, [this] { end(tr("Numerics measured.")); });
  connect(&session.runner(), &Runner::tensorsCaptured, this, [this] { end(tr("Tensors captured.")); });
  connect(&session.runner(), &Runner::sweepingChanged, this,
          [this] { m_session.runner().isSweeping() ? begin() : end(tr("Sweep complete.")); });
  connect(&session.runner(), &Runner::dropped, this, &RunNotice::drop);
  connect(&session.runner(), &Runner::started, this, &RunNotice::begin);
  connect(&session.runner(), &Runner::progress, this, &RunNotice::showProgress);
  connect(&desktop, &Desktop::activated, &window, [&window] {
    window.show();
    window.raise();
    window.activateWindow();
  });
}

void RunNotice::begin() {
  if (!m_session.runner().isRunning()) return;  // it has failed already
  m_since.start();
  m_percent = 0;
  m_isBusy = true;
  m_desktop.stayAwake(true, tr("A pipeline is being measured"));
}

/// A sweep is over when all its runs are.
void RunNotice::end(const QString& outcome) {
  if (!m_isBusy || m_session.runner().isRunning()) return;
  drop();
  if (m_since.hasExpired(m_longTime.count()) && !m_window.isActiveWindow())
    m_desktop.notify(m_session.pipeline().displayName(), outcome);
}

void RunNotice::drop() {
  m_isBusy = false;
  m_desktop.stayAwake(false, {});
  m_desktop.showProgress(std::nullopt);
}

/// Only whole percents, so that the bus stays quiet. The duration of a sweep's points is unknown.
void RunNotice::showProgress(const QString&, int done, int total) {
  if (!m_isBusy || m_session.runner().isSweeping() || total <= 0) return;
  const int percent = 100 * done / total;
  if (percent == std::exchange(m_percent, percent)) return;
  m_desktop.showProgress(percent / 100.0);
}

QString RunNotice::summaryOfRun() const {
  return m_session.results().lastRun() ? summaryOf(m_session.results().lastRun()->record) : tr("Run complete.");
}

}  // namespace fuseline::ui
