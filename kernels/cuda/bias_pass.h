// Products whose bias the library cannot add.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/stream.h"

#include <memory>

namespace fuseline::cuda {

/// As `library`, but what it refuses with a bias it solves without one, and a pass over c adds it: c is rounded twice
/// then. Which types of codes, bias and c go together differs between GPUs and versions of cuBLASLt.
std::unique_ptr<GemmLibrary> makeGemmsWithBiasPass(std::unique_ptr<GemmLibrary> library, int numMultiprocessors,
                                                   Stream stream);

}  // namespace fuseline::cuda
