// Launches of norms. Plain C++: the kernels are in norm_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/norm_data.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>

namespace fuseline::cuda {

using device::NormAddend;
using device::NormBackward;
using device::NormForward;
using device::NormKind;
using device::NormProblem;

/// Without norm.y: norm.mean and norm.rstd only.
void launchNormForward(const NormForward& norm, Stream stream);

/// norm.parts: numNormParts floats, if parameter gradients are requested.
void launchNormBackward(const NormBackward& norm, int numMultiprocessors, Stream stream);
std::int64_t numNormParts(const NormProblem& problem, int numMultiprocessors);

/// The same with rowwise quantized tensors of y, or of dx, whose columns are a multiple of 8; y or dx may then be null.
void launchNormForwardRows(const NormForward& norm, const device::QuantizedOutputs& quantizedOutputs, Stream stream);
void launchNormBackwardRows(const NormBackward& norm, const device::QuantizedOutputs& quantizedOutputs,
                            int numMultiprocessors, Stream stream);

/// The same with quantized tensors of any kind of y, whose columns are a multiple of 8; y may then be null. norm.rstd,
/// and norm.mean of LayerNorm, have memory.
void launchNormForwardTiles(const NormForward& norm, const device::QuantizedOutputs& quantizedOutputs, Stream stream);
/// The same where mean and rstd have been computed.
void launchMeasuredNormTiles(const NormForward& norm, const device::QuantizedOutputs& quantizedOutputs, Stream stream);

}  // namespace fuseline::cuda
