// Messages about GEMMs for which cuBLASLt has no algorithm.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/gemm.h"

#include <string>

namespace fuseline::cuda {

/// "2048 x 4096 x 512 of E4M3 (per_tensor) and ... to bf16": the extents m, n and k, and the formats.
std::string describe(const GemmProblem& problem);

/// A sentence with the GEMM and the next step. computeMajor: of the GPU's compute capability. Sources: the cuBLAS
/// documentation, "Narrow Precision Data Types Usage"; TransformerEngine's recipe Float8BlockScaling.
std::string refusalOf(const GemmProblem& problem, int computeMajor);

}  // namespace fuseline::cuda
