// GEMMs whose epilogue the library refuses, or computes slowly.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/kernel_def.h"

#include <memory>

namespace fuseline::cuda {

/// Like `library`, but a problem that it refuses because of its epilogue is solved with a smaller epilogue or none, and
/// elementwise programs do the rest: the GEMM's result is rounded, read again for bias, activation or its gradient, and
/// rounded a second time; a is read again for its sums. The supported combinations of quantized types, bias and c
/// differ between GPUs and versions of cuBLASLt. An activation, its gradient or a bias gradient that the library
/// supports is timed against its pass, if there is time. device: its library is not used.
std::unique_ptr<GemmLibrary> makeGemmsWithPasses(std::unique_ptr<GemmLibrary> library, const DeviceContext& device);

}  // namespace fuseline::cuda
