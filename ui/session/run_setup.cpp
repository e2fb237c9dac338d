// Settings in, signals out.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/run_setup.h"

#include "core/tensor/safetensors.h"

#include <tuple>

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
  if (m_pass == ExecutionMode::Inference) spec.optimizer = Optimizer::None;
  if (spec.optimizer == Optimizer::None) spec.optimizerFields.clear();
  return spec;
}

std::optional<AdamW> RunSetup::optimizer() const {
  const RunSpec settings = spec();
  if (settings.optimizer == Optimizer::None) return std::nullopt;
  const Result<AdamW> options = adamWFrom(settings.optimizerFields);
  return options ? std::optional(*options) : std::nullopt;
}

void RunSetup::takeOptimizer(const RunSpec& settings) {
  RunSpec options = m_options;
  options.optimizer = settings.optimizer;
  options.optimizerFields = settings.optimizerFields;
  setOptions(options);
}

void RunSetup::setOptions(const RunSpec& options) {
  const bool hasOtherSeed = options.seed != m_options.seed;
  const bool hasOtherRanks = std::tie(options.ranks, options.overlaps, options.chunks) !=
                             std::tie(m_options.ranks, m_options.overlaps, m_options.chunks);
  const std::optional<AdamW> before = optimizer();
  m_options = options;
  m_options.timing = StepTiming::Auto;  // on a GPU that of the run target
  if (hasOtherSeed) Q_EMIT tensorSourceChanged();
  if (hasOtherRanks) Q_EMIT ranksChanged();
  if (optimizer() != before) Q_EMIT optimizerChanged();
}

void RunSetup::setTensorsFile(const QString& path) {
  if (path == m_tensorsFile) return;
  m_tensorsFile = path;
  Q_EMIT tensorSourceChanged();
  Q_EMIT tensorsFileChanged();
}

}  // namespace fuseline::ui
