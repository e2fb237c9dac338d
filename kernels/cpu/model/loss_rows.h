// CrossEntropy row by row, for the kernels that have the logits in memory or a few rows of them at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/cross_entropy_form.h"
#include "core/tensor/dtype.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace fuseline::cpu {

/// As countTargets(), but throws.
std::int64_t checkedTargets(const CrossEntropyForm& form, std::span<const std::int64_t> targets, std::int64_t classes);

/// Rows of logits: [.., classes] of one dtype.
struct LogitRows {
  DType dtype = DType::F32;
  std::int64_t classes = 0;

  std::int64_t bytes() const { return classes * sizeBytes(dtype); }
};

/// The loss of one row. An ignored row is not read. lse: its log-sum-exp; may be null.
float lossOfRow(const CrossEntropyForm& form, const LogitRows& rows, const std::byte* logits, std::int64_t target,
                float* lse);

/// The gradient of one row, perhaps in place. dy: of the row's loss.
void writeLossGradient(const CrossEntropyForm& form, const LogitRows& rows, const std::byte* logits,
                       std::int64_t target, float lse, double dy, std::byte* dx);

/// The loss of all rows, in their order.
float reducedLoss(const CrossEntropyForm& form, std::span<const float> losses, std::int64_t numCounted);

}  // namespace fuseline::cpu
