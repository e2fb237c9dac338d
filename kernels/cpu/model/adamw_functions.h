// The vector loops of AdamW and of the norm of gradients, over adjacent elements of one parameter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/adamw.h"
#include "core/tensor/dtype.h"

#include <cstddef>

namespace fuseline::cpu {

struct AdamWRange {
  float* weights = nullptr;   // float32: the parameter, or its copy
  void* rounded = nullptr;    // the parameter of 16 bits; null: it is float32
  void* gradients = nullptr;  // set to 0 if `clears`
  float* expAvg = nullptr;
  float* expAvgSq = nullptr;
  std::size_t count = 0;
  bool clears = false;
};

using AdamWFunction = void (*)(const AdamWRange&, const AdamWTerms<float>&, const AdamWCorrections<float>&);

/// gradient: the parameter's dtype, or float32.
AdamWFunction adamWFunction(DType parameter, DType gradient);

using SquaresFunction = float (*)(const void* gradients, std::size_t count);

/// The sum of squares, in float32.
SquaresFunction squaresFunction(DType gradient);

}  // namespace fuseline::cpu
