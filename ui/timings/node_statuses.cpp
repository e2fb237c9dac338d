// Follows the runs of a session. A run that the user stopped has not failed.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/node_statuses.h"

#include "ui/theme/format.h"

#include <QRegularExpression>

#include <utility>

namespace fuseline::ui {

namespace {

bool isNamedIn(const QString& sentence, const std::string& op) {
  const QRegularExpression word(QStringLiteral("(?<![\\w.])%1(?!\\w)").arg(QRegularExpression::escape(toQt(op))));
  return sentence.contains(word);
}

}  // namespace

NodeStatuses::NodeStatuses(const Session& session) : m_session(session) {
  connect(&session.runner(), &Runner::started, this, &NodeStatuses::begin);
  connect(&session.runner(), &Runner::progress, this, [this](const QString& stage) {
    m_blamesAll = m_blamesAll || (stage != QStringLiteral("starting") && stage != QStringLiteral("preparing"));
  });
  connect(&session.runner(), &Runner::cancelWanted, this, [this] { m_isCancelled = true; });
  connect(&session.runner(), &Runner::finished, this, [this] { end(); });
  connect(&session.runner(), &Runner::numericsFinished, this, [this] { end(); });
  connect(&session.runner(), &Runner::tensorsCaptured, this, [this] { end(); });
  connect(&session.runner(), &Runner::failed, this, &NodeStatuses::end);
  connect(&session.pipeline(), &OpenPipeline::changed, this, [this] { m_failure.clear(); });
}

void NodeStatuses::begin() {
  if (!m_session.runner().isRunning()) return;  // it has failed already
  m_isRunning = true;
  m_blamesAll = false;
  m_isCancelled = false;
  m_failure.clear();
  Q_EMIT changed();
}

/// Messages after the end of a run are about something else.
void NodeStatuses::end(const QString& failure) {
  if (!std::exchange(m_isRunning, false)) return;
  m_failure = m_isCancelled ? QString() : failure;
  m_blamesAll = m_blamesAll || m_session.runner().worker().isLost();
  m_blamed = namedIn(m_failure);
  Q_EMIT changed();
}

std::set<std::string> NodeStatuses::namedIn(const QString& sentence) const {
  std::set<std::string> named;
  for (const DocumentOp& op : m_session.pipeline().document().ops())
    if (isNamedIn(sentence, op.id)) named.insert(op.id);
  return named;
}

/// A failure that names no op blames all of them, unless the run was refused before any op ran.
bool NodeStatuses::isBlamed(const std::string& op) const {
  return !m_failure.isEmpty() && (m_blamed.empty() ? m_blamesAll : m_blamed.contains(op));
}

NodeStatus NodeStatuses::of(const std::string& op) const {
  if (m_isRunning) return NodeStatus::Running;
  if (isBlamed(op)) return NodeStatus::Failed;
  const auto& run = m_session.results().lastRun();
  if (!run || !run->document.findOp(op)) return NodeStatus::NeverRun;
  if (run->isStale) return NodeStatus::Stale;
  return run->record.isPartial ? NodeStatus::Stopped : NodeStatus::Measured;
}

QString NodeStatuses::textOf(const std::string& op) const {
  switch (of(op)) {
    case NodeStatus::NeverRun: return tr("Not measured yet.");
    case NodeStatus::Running: return tr("Running.");
    case NodeStatus::Measured: return tr("Measured on %1.").arg(toQt(m_session.results().lastRun()->device));
    case NodeStatus::Stale: return tr("Times were measured before the pipeline changed. Run again.");
    case NodeStatus::Stopped: return tr("The run was stopped early, so its times come from fewer rounds. Run again.");
    case NodeStatus::Failed: return tr("The last run failed: %1").arg(m_failure);
  }
  return {};
}

}  // namespace fuseline::ui
