// Products whose epilogue the library refuses, or is slow with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/kernel_def.h"

#include <memory>

namespace fuseline::cuda {

/// As `library`, but what it refuses with an epilogue it solves with less of it or none, and elementwise programs do
/// the rest: what the product gives is rounded, read again for bias, activation or its gradient, and rounded once more;
/// a is read once more for its sums. Which types of codes, bias and c go together differs between GPUs and versions of
/// cuBLASLt. An activation, its gradient or a bias gradient that the library takes is timed against its pass, where
/// there is time. device: its library is not used.
std::unique_ptr<GemmLibrary> makeGemmsWithPasses(std::unique_ptr<GemmLibrary> library, const DeviceContext& device);

}  // namespace fuseline::cuda
