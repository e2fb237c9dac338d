// Errors, tensors and statuses of runs become a part of how nodes look.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/measured_looks.h"

#include "ui/numerics/measured_tensor.h"
#include "ui/numerics/numerics_model.h"
#include "ui/session/edits.h"
#include "ui/theme/format.h"

#include <map>
#include <string>

namespace fuseline::ui {

MeasuredLooks::MeasuredLooks(Session& session, const CanvasScope& scope)
    : m_session(session), m_scope(scope), m_statuses(session), m_overlay(session) {
  connect(&m_overlay, &HeatOverlay::changed, this, &MeasuredLooks::changed);
  connect(&session.runner(), &Runner::numericsFinished, this, &MeasuredLooks::changed);
  connect(&session.runner(), &Runner::tensorsCaptured, this, &MeasuredLooks::changed);
  connect(&m_statuses, &NodeStatuses::changed, this, [this] {
    if (m_areStatusesVisible) Q_EMIT changed();
  });
}

void MeasuredLooks::addTo(std::vector<NodeLook>& looks) const {
  if (m_scope.isInside()) return;
  addErrors(looks);
  m_overlay.addTo(looks);
  addTensors(looks);
  addStatuses(looks);
}

/// A failure that ops show ends with the next edit.
QList<bool> MeasuredLooks::staleness() const {
  const LastResults& results = m_session.results();
  return {results.lastRun() && !results.lastRun()->isStale, results.lastNumerics() && !results.lastNumerics()->isStale,
          results.lastCapture() && !results.lastCapture()->isStale, m_areStatusesVisible && m_statuses.hasFailed()};
}

/// Errors of a pipeline that has changed since would be taken for those of this one.
void MeasuredLooks::addErrors(std::vector<NodeLook>& looks) const {
  const auto& numerics = m_session.results().lastNumerics();
  if (m_overlay.mode() != HeatMode::Error || !numerics || numerics->isStale) return;
  const std::map<std::string, double> errors = errorsByOwner(numerics->report);
  for (NodeLook& look : looks)
    if (const auto found = errors.find(look.id); found != errors.end()) look.rmsError = found->second;
}

/// To the tips of ports.
void MeasuredLooks::addTensors(std::vector<NodeLook>& looks) const {
  const MeasuredTensors measured(m_session);
  if (measured.isEmpty()) return;
  const Graph& graph = m_scope.analysis()->graph();
  std::map<Endpoint, Endpoint> sources;
  for (const Link& link : linksOf(m_scope.document())) sources[link.to] = link.from;
  const auto addTip = [&](PortLook& port, const Endpoint& source) {
    const Value* value = valueAt(graph, source);
    const QString text = value ? measured.textOf(graph, *value) : QString();
    if (!text.isEmpty()) port.tip += QStringLiteral("<br>") + text.toHtmlEscaped();
  };
  for (NodeLook& look : looks) {
    for (PortLook& port : look.inputs) addTip(port, sources[{look.id, port.name}]);
    for (PortLook& port : look.outputs) addTip(port, {look.id, port.name});
  }
}

void MeasuredLooks::addStatuses(std::vector<NodeLook>& looks) const {
  if (!m_areStatusesVisible) return;
  for (NodeLook& look : looks) {
    if (look.kind != NodeKind::Op || look.isNotRun) continue;
    look.status = m_statuses.of(look.id);
    look.tip += QStringLiteral("<br><br>") + m_statuses.textOf(look.id).toHtmlEscaped();
  }
}

void MeasuredLooks::setStatusesVisible(bool visible) {
  m_areStatusesVisible = visible;
  Q_EMIT changed();
}

}  // namespace fuseline::ui
