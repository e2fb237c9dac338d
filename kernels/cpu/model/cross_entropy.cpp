// Kernel "CrossEntropy": a row of logits a thread; the losses are added in their order.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cross_entropy_form.h"
#include "core/tensor/tensor.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/model/cross_entropy_functions.h"
#include "core/runtime/step_operand.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <omp.h>

namespace fuseline::cpu::kernels {

KernelDef cross_entropy();

namespace {

/// A thread is worth waking for so many logits.
constexpr std::int64_t kLogitsPerThread = 8192;

struct LossParts {
  CrossEntropyForm form;
  Binding x, target, y, lse;
  Binding dy, dx;  // of backward
  int threads = 1;

  std::int64_t rows() const { return x.spec.rows(); }
  std::int64_t classes() const { return x.spec.cols(); }
  int numThreads() const {
    return static_cast<int>(std::clamp<std::int64_t>(x.spec.numElements() / kLogitsPerThread, 1, threads));
  }
  const std::int64_t* targets(Pointers pointers) const {
    return reinterpret_cast<const std::int64_t*>(target.at(pointers));
  }
  std::byte* rowOf(const Binding& binding, std::int64_t row, Pointers pointers) const {
    return binding.at(pointers) + row * classes() * sizeBytes(binding.spec.dtype);
  }
  /// Throws for a target that is no class. The rows that count.
  std::int64_t checkedRows(Pointers pointers) const {
    const std::int64_t* const all = targets(pointers);
    std::int64_t counted = 0;
    for (std::int64_t row = 0; row < rows(); ++row) {
      if (form.isIgnored(all[row])) continue;
      if (all[row] < 0 || all[row] >= classes())
        throw std::runtime_error(badTargetText(form, row, all[row], classes()));
      ++counted;
    }
    return counted;
  }
};

class LossForward final : public Kernel {
 public:
  explicit LossForward(LossParts parts) : m(std::move(parts)) {}
  /// The losses of the rows.
  std::size_t workspaceBytes() const override { return static_cast<std::size_t>(m.rows()) * sizeof(float); }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::int64_t counted = m.checkedRows(pointers);
    auto* const losses = reinterpret_cast<float*>(workspace);
    const int threads = m.numThreads();
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::int64_t row = 0; row < m.rows(); ++row) losses[row] = lossOf(row, pointers);
    if (m.y) writeLoss(losses, counted, reinterpret_cast<float*>(m.y.at(pointers)));
  }

 private:
  float lossOf(std::int64_t row, Pointers pointers) const {
    const std::int64_t target = m.targets(pointers)[row];
    auto* const lse = reinterpret_cast<float*>(m.lse.at(pointers));
    if (m.form.isIgnored(target)) {
      if (lse) lse[row] = 0.0F;
      return 0.0F;
    }
    const std::byte* const logits = m.rowOf(m.x, row, pointers);
    const LogitSums sums = logitFunctions(m.x.spec.dtype).sums(logits, static_cast<std::size_t>(m.classes()));
    const double ofRow = static_cast<double>(sums.max) + std::log(static_cast<double>(sums.expSum));
    if (lse) lse[row] = static_cast<float>(ofRow);
    double atTarget = 0.0;
    decode(logits + target * sizeBytes(m.x.spec.dtype), m.x.spec.dtype, std::span(&atTarget, 1));
    const double mean = static_cast<double>(sums.sum) / static_cast<double>(m.classes());
    const double smoothing = m.form.smoothing;
    return static_cast<float>((1.0 - smoothing) * (ofRow - atTarget) +
                              (smoothing > 0.0 ? smoothing * (ofRow - mean) : 0.0) +
                              m.form.lseSquareScale * ofRow * ofRow);
  }

  void writeLoss(const float* losses, std::int64_t counted, float* y) const {
    if (m.form.reduction == LossReduction::None) {
      std::copy_n(losses, m.rows(), y);
      return;
    }
    double sum = 0.0;
    for (std::int64_t row = 0; row < m.rows(); ++row) sum += static_cast<double>(losses[row]);
    *y = static_cast<float>(sum * m.form.rowScale(counted));
  }

  LossParts m;
};

class LossBackward final : public Kernel {
 public:
  explicit LossBackward(LossParts parts) : m(std::move(parts)) {}

  void run(Pointers pointers, std::byte*) override {
    const double scale = m.form.rowScale(m.checkedRows(pointers));
    const int threads = m.numThreads();
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::int64_t row = 0; row < m.rows(); ++row) writeRow(row, scale, pointers);
  }

 private:
  void writeRow(std::int64_t row, double scale, Pointers pointers) const {
    const std::int64_t target = m.targets(pointers)[row];
    const DType dtype = m.x.spec.dtype;
    std::byte* const dx = m.rowOf(m.dx, row, pointers);
    if (m.form.isIgnored(target)) {
      std::memset(dx, 0, static_cast<std::size_t>(m.classes() * sizeBytes(dtype)));
      return;
    }
    const auto* const gradient = reinterpret_cast<const float*>(m.dy.at(pointers));
    const double dy = scale * static_cast<double>(gradient[m.form.reduction == LossReduction::None ? row : 0]);
    const float lse = reinterpret_cast<const float*>(m.lse.at(pointers))[row];
    const double factor = dy * (1.0 + 2.0 * m.form.lseSquareScale * static_cast<double>(lse));
    const double shift = dy * m.form.smoothing / static_cast<double>(m.classes());
    const std::byte* const logits = m.rowOf(m.x, row, pointers);
    logitFunctions(dtype).gradient(logits, static_cast<std::size_t>(m.classes()), lse, static_cast<float>(factor),
                                   static_cast<float>(shift), dx);
    writeTarget(logits, target, factor, lse, shift + dy * (1.0 - m.form.smoothing), dx);
  }

  /// Rounded once, as all others.
  void writeTarget(const std::byte* logits, std::int64_t target, double factor, float lse, double shift,
                   std::byte* dx) const {
    const DType dtype = m.x.spec.dtype;
    double logit = 0.0;
    decode(logits + target * sizeBytes(dtype), dtype, std::span(&logit, 1));
    const double value = factor * std::exp(logit - static_cast<double>(lse)) - shift;
    encode(std::span(&value, 1), dtype, dx + target * sizeBytes(dtype));
  }

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

}  // namespace

KernelDef cross_entropy() {
  return {
      .name = "CrossEntropy",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileLoss,
  };
}

}  // namespace fuseline::cpu::kernels
