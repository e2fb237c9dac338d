// Launches of norms. Plain C++: the kernels stand in norm_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/norm_data.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/stream.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cuda {

using device::GradientMeans;
using device::NormAddend;
using device::NormBackward;
using device::NormForward;
using device::NormKind;
using device::NormProblem;

/// Without norm.y: norm.mean and norm.rstd only.
void launchNormForward(const NormForward& norm, Stream stream);

/// norm.parts: numNormParts floats, where gradients of parameters are wanted.
void launchNormBackward(NormBackward norm, int numMultiprocessors, Stream stream);
std::int64_t numNormParts(const NormProblem& problem, int numMultiprocessors);

/// The same with copies of y, whose columns are a multiple of 8; y may be null then. norm.rstd, and norm.mean of
/// LayerNorm, have memory.
void launchNormForwardTiles(const NormForward& norm, const device::HandOver& handOver, device::CopyKind kind,
                            Stream stream);
/// With copies of dx, which may be null then. norm.means has memory.
void launchNormBackwardTiles(const NormBackward& norm, const device::HandOver& handOver, device::CopyKind kind,
                             int numMultiprocessors, Stream stream);

}  // namespace fuseline::cuda
