// The vector loops of CrossEntropy over one row of logits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"

#include <cstddef>

namespace fuseline::cpu {

struct LogitSums {
  float max = 0.0F;
  float expSum = 0.0F;  // of exp(x - max)
  float sum = 0.0F;
};

struct LogitFunctions {
  LogitSums (*sums)(const void* x, std::size_t cols);
  /// dx = factor exp(x - lse) - shift.
  void (*gradient)(const void* x, std::size_t cols, float lse, float factor, float shift, void* dx);
};

/// For rows of f32, f16 or bf16.
const LogitFunctions& logitFunctions(DType dtype);

}  // namespace fuseline::cpu
