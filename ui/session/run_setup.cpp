// Settings in, signals out.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/run_setup.h"

#include "core/tensor/safetensors.h"

namespace fuseline::ui {

void RunSetup::setPass(ExecutionMode pass) {
  if (pass == m_pass) return;
  m_pass = pass;
  Q_EMIT passChanged();
}

void RunSetup::setRunTarget(const RunTarget& target) {
  if (target == m_runTarget) return;
  const bool isAnotherDevice = target.place() != m_runTarget.place();
  m_runTarget = target;
  if (isAnotherDevice) Q_EMIT deviceChanged();
  Q_EMIT runTargetChanged();
}

void RunSetup::setPlanTarget(const PlanTarget& target) {
  if (target == m_planTarget) return;
  m_planTarget = target;
  Q_EMIT planTargetChanged();
}

int RunSetup::mostRanks() { return runSpecField("ranks").most; }

void RunSetup::setRanks(int ranks) {
  if (ranks == m_options.ranks || ranks < 1 || ranks > mostRanks()) return;
  m_options.ranks = ranks;
  Q_EMIT ranksChanged();
}

RunSpec RunSetup::spec() const {
  RunSpec spec = m_options;
  spec.device = m_runTarget.device;
  spec.pass = m_pass;
  if (m_runTarget.isGpu()) spec.timing = m_runTarget.timing;
  return spec;
}

void RunSetup::setOptions(const RunSpec& options) {
  const bool hasOtherSeed = options.seed != m_options.seed;
  const bool hasOtherRanks = options.ranks != m_options.ranks;
  m_options = options;
  if (hasOtherSeed) Q_EMIT tensorSourceChanged();
  if (hasOtherRanks) Q_EMIT ranksChanged();
}

void RunSetup::setTensorsFile(const QString& path) {
  if (path == m_tensorsFile) return;
  m_tensorsFile = path;
  Q_EMIT tensorSourceChanged();
  Q_EMIT tensorsFileChanged();
}

}  // namespace fuseline::ui
