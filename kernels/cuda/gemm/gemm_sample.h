// Sample operands for timing a GEMM: their sizes, and numbers that are distributed like those of layers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/gemm.h"

#include <cstddef>
#include <vector>

namespace fuseline::cuda {

/// An operand in memory: a pattern that is repeated until it is full.
struct SampleOperand {
  std::size_t sizeBytes = 0;  // 0: the problem does not have it
  std::vector<std::byte> pattern;
};

/// c is a sample, too, because it may be the addend.
struct GemmSample {
  SampleOperand a;
  SampleOperand b;
  SampleOperand aScales;
  SampleOperand bScales;
  SampleOperand factors;  // GemmPointers::factors
  SampleOperand bias;
  SampleOperand geluInput;
  SampleOperand c;
  SampleOperand cScale;
  SampleOperand cAmax;
  SampleOperand preActivation;
  SampleOperand biasGrad;
};

/// Never zeros: multiplying them takes less power, so that the GPU runs faster than with real data. Nor infinity or
/// NaN. Scales in cuBLASLt's layout, all the same.
GemmSample sampleOf(const GemmProblem& problem);

}  // namespace fuseline::cuda
