// Launches of norms. Plain C++: the kernels stand in norm_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/norm_data.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/stream.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cuda {

using device::NormAddend;
using device::NormBackward;
using device::NormForward;
using device::NormKind;
using device::NormProblem;

void launchNormForward(const NormForward& norm, Stream stream);

/// parts: numNormParts floats, for the gradients of parameters.
void launchNormBackward(const NormBackward& norm, int numMultiprocessors, float* parts, Stream stream);
std::int64_t numNormParts(const NormProblem& problem, int numMultiprocessors);

/// The same with copies of y, whose columns are a multiple of 8; y may be null then. norm.rstd, and norm.mean of
/// LayerNorm, have memory.
void launchNormForwardTiles(const NormForward& norm, const device::HandOver& handOver, device::CopyKind kind,
                            Stream stream);
/// dx with copies of it; dx may be null then. Gradients of parameters are up to launchNormBackward. means: 2 rows
/// floats.
void launchNormInputGradientTiles(const NormBackward& norm, const device::HandOver& handOver, device::CopyKind kind,
                                  float* means, Stream stream);

}  // namespace fuseline::cuda
