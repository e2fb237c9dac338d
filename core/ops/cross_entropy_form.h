// CrossEntropy beside its definition: what its kernels, too, must know of its attributes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"
#include "core/support/result.h"

#include <cstdint>
#include <span>

namespace fuseline {

enum class LossReduction { Mean, Sum, None };

struct CrossEntropyForm {
  static constexpr int kLogits = 0;  // slots of its inputs
  static constexpr int kTarget = 1;
  static constexpr int kLse = 0;  // of its residual

  std::int64_t ignoreIndex = -100;
  LossReduction reduction = LossReduction::Mean;
  double smoothing = 0.0;
  double lseSquareScale = 0.0;

  bool isIgnored(std::int64_t target) const { return target == ignoreIndex; }
  /// The factor of each row that counts; numCounted: rows that are not ignored.
  double rowScale(std::int64_t numCounted) const {
    return reduction == LossReduction::Mean && numCounted > 0 ? 1.0 / static_cast<double>(numCounted) : 1.0;
  }
};

CrossEntropyForm crossEntropyForm(const Attributes& attributes);

/// The rows that count.
/// Errors: "CrossEntropy: target[5] is 40000, but there are 32000 classes, 0 to 31999; ignore_index is -100."
Result<std::int64_t> countTargets(const CrossEntropyForm& form, std::span<const std::int64_t> targets,
                                  std::int64_t classes);

}  // namespace fuseline
