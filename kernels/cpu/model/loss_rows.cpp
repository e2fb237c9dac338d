// Whole rows by vectors; what is one number a row in double precision.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/model/loss_rows.h"

#include "core/tensor/tensor.h"
#include "kernels/cpu/model/cross_entropy_functions.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace fuseline::cpu {

namespace {

double logitAt(const LogitRows& rows, const std::byte* logits, std::int64_t index) {
  double logit = 0.0;
  decode(logits + index * sizeBytes(rows.dtype), rows.dtype, std::span(&logit, 1));
  return logit;
}

}  // namespace

std::int64_t checkedTargets(const CrossEntropyForm& form, std::span<const std::int64_t> targets, std::int64_t classes) {
  const Result<std::int64_t> counted = countTargets(form, targets, classes);
  if (!counted) throw std::runtime_error(counted.error().message);
  return *counted;
}

float lossOfRow(const CrossEntropyForm& form, const LogitRows& rows, const std::byte* logits, std::int64_t target,
                float* lse) {
  if (form.isIgnored(target)) {
    if (lse) *lse = 0.0F;
    return 0.0F;
  }
  const LogitSums sums = logitFunctions(rows.dtype).sums(logits, static_cast<std::size_t>(rows.classes));
  const double ofRow = static_cast<double>(sums.max) + std::log(static_cast<double>(sums.expSum));
  if (lse) *lse = static_cast<float>(ofRow);
  double loss = (1.0 - form.smoothing) * (ofRow - logitAt(rows, logits, target));
  if (form.lseSquareScale > 0.0) loss += form.lseSquareScale * ofRow * ofRow;
  if (form.smoothing == 0.0) return static_cast<float>(loss);  // 0 times a masked class must not count
  const double mean = static_cast<double>(sums.sum) / static_cast<double>(rows.classes);
  return static_cast<float>(loss + form.smoothing * (ofRow - mean));
}

/// The target's element is rounded once, as all others.
void writeLossGradient(const CrossEntropyForm& form, const LogitRows& rows, const std::byte* logits,
                       std::int64_t target, float lse, double dy, std::byte* dx) {
  if (form.isIgnored(target)) {
    std::memset(dx, 0, static_cast<std::size_t>(rows.bytes()));
    return;
  }
  const double factor = dy * (1.0 + 2.0 * form.lseSquareScale * static_cast<double>(lse));
  const double shift = dy * form.smoothing / static_cast<double>(rows.classes);
  const double atTarget =
      factor * std::exp(logitAt(rows, logits, target) - static_cast<double>(lse)) - shift - dy * (1.0 - form.smoothing);
  logitFunctions(rows.dtype)
      .gradient(logits, static_cast<std::size_t>(rows.classes), lse, static_cast<float>(factor),
                static_cast<float>(shift), dx);
  encode(std::span(&atTarget, 1), rows.dtype, dx + target * sizeBytes(rows.dtype));
}

float reducedLoss(const CrossEntropyForm& form, std::span<const float> losses, std::int64_t numCounted) {
  double sum = 0.0;
  for (const float loss : losses) sum += static_cast<double>(loss);
  return static_cast<float>(sum * form.rowScale(numCounted));
}

}  // namespace fuseline::cpu
