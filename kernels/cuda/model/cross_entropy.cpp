// Kernel "CrossEntropy": the losses of the rows and their sum; backward the gradient of the logits.
// Targets are data. They stay the same from run to run, as all that is bound to an executor: the host checks and counts
// them in the first run.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cross_entropy_form.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/cross_entropy_launch.h"

#include <stdexcept>
#include <utility>

namespace fuseline::cuda::kernels {

KernelDef cross_entropy();

namespace {

struct LossParts {
  CrossEntropyForm form;
  Binding x, target, y, lse;
  Binding dy, dx;  // of backward
};

class LossKernel final : public Kernel {
 public:
  LossKernel(LossParts parts, const DeviceContext& device) : m(std::move(parts)), m_device(device) {}

  /// The losses of the rows, unless they are the result.
  std::size_t workspaceBytes() const override {
    return m.dx || isByRow() ? 0 : static_cast<std::size_t>(m.x.spec.rows()) * sizeof(float);
  }

  void run(Pointers pointers, std::byte* workspace) override {
    countOnce(pointers);
    CrossEntropyTask task{.x = m.x.at(pointers),
                          .element = elementOf(m.x.spec.dtype),
                          .rows = m.x.spec.rows(),
                          .classes = m.x.spec.cols(),
                          .target = countsAt(m.target, pointers),
                          .ignoreIndex = m.form.ignoreIndex,
                          .smoothing = static_cast<float>(m.form.smoothing),
                          .lseSquareScale = static_cast<float>(m.form.lseSquareScale),
                          .scale = static_cast<float>(m.form.rowScale(m_numCounted)),
                          .lse = reinterpret_cast<float*>(m.lse.at(pointers))};
    if (m.dx) return runBackward(task, pointers);
    auto* const y = reinterpret_cast<float*>(m.y.at(pointers));
    task.losses = isByRow() ? y : reinterpret_cast<float*>(workspace);
    task.loss = isByRow() ? nullptr : y;
    launchRowLosses(task, m_device.stream);
    if (task.loss) launchLossSum(task, m_device.stream);
  }

 private:
  bool isByRow() const { return m.form.reduction == LossReduction::None; }

  void runBackward(CrossEntropyTask& task, Pointers pointers) const {
    task.dy = reinterpret_cast<const float*>(m.dy.at(pointers));
    task.isDyByRow = isByRow();
    task.dx = m.dx.at(pointers);
    launchCrossEntropyGradient(task, m_device.stream);
  }

  void countOnce(Pointers pointers) {
    if (std::exchange(m_isChecked, true)) return;
    const Result<std::int64_t> counted =
        countTargets(m.form, readCounts(m.target, pointers, m_device), m.x.spec.cols());
    if (!counted) throw std::runtime_error(counted.error().message);
    m_numCounted = *counted;
  }

  LossParts m;
  const DeviceContext& m_device;
  std::int64_t m_numCounted = 0;
  bool m_isChecked = false;
};

std::optional<Error> require(const CompileRequest& request, OperandKind kind, int slot, Binding& binding) {
  const Result<Binding> found = requireOperand(request, {0, kind, slot});
  if (!found) return found.error();
  binding = *found;
  return std::nullopt;
}

Result<std::unique_ptr<Kernel>> compileLoss(const CompileRequest& request) {
  LossParts parts{.form = crossEntropyForm(request.member(0).attributes)};
  if (auto error = require(request, OperandKind::Input, CrossEntropyForm::kLogits, parts.x)) return *error;
  if (auto error = require(request, OperandKind::Input, CrossEntropyForm::kTarget, parts.target)) return *error;
  if (request.step.phase == Phase::Forward) {
    if (auto error = require(request, OperandKind::Output, 0, parts.y)) return *error;
    parts.lse = findOperand(request, {0, OperandKind::Residual, CrossEntropyForm::kLse});
  } else {
    if (auto error = require(request, OperandKind::Residual, CrossEntropyForm::kLse, parts.lse)) return *error;
    if (auto error = require(request, OperandKind::GradOutput, 0, parts.dy)) return *error;
    if (auto error = require(request, OperandKind::GradInput, CrossEntropyForm::kLogits, parts.dx)) return *error;
  }
  return std::unique_ptr<Kernel>(std::make_unique<LossKernel>(std::move(parts), request.device));
}

}  // namespace

KernelDef cross_entropy() {
  return {
      .name = "CrossEntropy",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileLoss,
  };
}

}  // namespace fuseline::cuda::kernels
