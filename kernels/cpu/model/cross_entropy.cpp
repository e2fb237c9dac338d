// Kernel "CrossEntropy": a row of logits a thread; the losses are added in their order.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cross_entropy_form.h"
#include "core/runtime/step_operand.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/model/loss_rows.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <omp.h>

namespace fuseline::cpu::kernels {

KernelDef cross_entropy();

namespace {
namespace cross_entropy_parts {

/// Logits that are worth waking a thread for.
constexpr std::int64_t kLogitsPerThread = 8192;

struct LossParts {
  CrossEntropyForm form;
  Binding x, target, y, lse;
  Binding dy, dx;  // of backward
  int threads = 1;

  std::int64_t rows() const { return x.spec.rows(); }
  LogitRows logits() const { return {x.spec.dtype, x.spec.cols()}; }
  int numThreads() const {
    return static_cast<int>(std::clamp<std::int64_t>(x.spec.numElements() / kLogitsPerThread, 1, threads));
  }
  std::span<const std::int64_t> targets(Pointers pointers) const {
    return {reinterpret_cast<const std::int64_t*>(target.at(pointers)), static_cast<std::size_t>(rows())};
  }
};

class LossForward final : public Kernel {
 public:
  explicit LossForward(LossParts parts) : m(std::move(parts)) {}
  /// The losses of the rows.
  std::size_t workspaceBytes() const override { return static_cast<std::size_t>(m.rows()) * sizeof(float); }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::span<const std::int64_t> targets = m.targets(pointers);
    const LogitRows rows = m.logits();
    const std::int64_t counted = checkedTargets(m.form, targets, rows.classes);
    auto* const losses = reinterpret_cast<float*>(workspace);
    auto* const lse = reinterpret_cast<float*>(m.lse.at(pointers));
    const std::byte* const x = m.x.at(pointers);
    const int threads = m.numThreads();
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::int64_t row = 0; row < m.rows(); ++row)
      losses[row] = lossOfRow(m.form, rows, x + row * rows.bytes(), targets[static_cast<std::size_t>(row)],
                              lse ? lse + row : nullptr);
    if (m.y) writeLoss({losses, targets.size()}, counted, reinterpret_cast<float*>(m.y.at(pointers)));
  }

 private:
  void writeLoss(std::span<const float> losses, std::int64_t counted, float* y) const {
    if (m.form.reduction == LossReduction::None)
      std::ranges::copy(losses, y);
    else
      *y = reducedLoss(m.form, losses, counted);
  }

  LossParts m;
};

class LossBackward final : public Kernel {
 public:
  explicit LossBackward(LossParts parts) : m(std::move(parts)) {}

  void run(Pointers pointers, std::byte*) override {
    const std::span<const std::int64_t> targets = m.targets(pointers);
    const LogitRows rows = m.logits();
    const double scale = m.form.rowScale(checkedTargets(m.form, targets, rows.classes));
    const auto* const lse = reinterpret_cast<const float*>(m.lse.at(pointers));
    const auto* const dy = reinterpret_cast<const float*>(m.dy.at(pointers));
    const bool isByRow = m.form.reduction == LossReduction::None;
    const std::byte* const x = m.x.at(pointers);
    std::byte* const dx = m.dx.at(pointers);
    const int threads = m.numThreads();
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::int64_t row = 0; row < m.rows(); ++row)
      writeLossGradient(m.form, rows, x + row * rows.bytes(), targets[static_cast<std::size_t>(row)], lse[row],
                        scale * static_cast<double>(dy[isByRow ? row : 0]), dx + row * rows.bytes());
  }

 private:
  LossParts m;
};

Result<std::unique_ptr<Kernel>> compileLoss(const CompileRequest& request) {
  const bool isForward = request.step.phase == Phase::Forward;
  LossParts parts{.form = crossEntropyForm(request.member(0).attributes), .threads = request.settings.threads};
  const auto require = [&](OperandKind kind, int slot, Binding& binding) -> std::optional<Error> {
    const Result<Binding> found = requireOperand(request, {0, kind, slot});
    if (!found) return found.error();
    binding = *found;
    return std::nullopt;
  };
  if (auto error = require(OperandKind::Input, CrossEntropyForm::kLogits, parts.x)) return *error;
  if (auto error = require(OperandKind::Input, CrossEntropyForm::kTarget, parts.target)) return *error;
  if (isForward) {
    parts.y = findOperand(request, {0, OperandKind::Output, 0});
    parts.lse = findOperand(request, {0, OperandKind::Residual, CrossEntropyForm::kLse});
    return std::unique_ptr<Kernel>(std::make_unique<LossForward>(std::move(parts)));
  }
  if (auto error = require(OperandKind::Residual, CrossEntropyForm::kLse, parts.lse)) return *error;
  if (auto error = require(OperandKind::GradOutput, 0, parts.dy)) return *error;
  if (auto error = require(OperandKind::GradInput, CrossEntropyForm::kLogits, parts.dx)) return *error;
  return std::unique_ptr<Kernel>(std::make_unique<LossBackward>(std::move(parts)));
}

}  // namespace cross_entropy_parts
}  // namespace

KernelDef cross_entropy() {
  using namespace cross_entropy_parts;
  return {
      .name = "CrossEntropy",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileLoss,
  };
}

}  // namespace fuseline::cpu::kernels
