// The GEMMs of linear layers at sizes of real models, for the comparison of algorithms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/gemm.h"

#include <string>
#include <vector>

namespace fuseline::cuda {

struct ProductCase {
  std::string name;  // "bf16 8B 2048 up forward"
  GemmProblem problem;
};

/// Forward and both gradients, in every format that Hopper multiplies, and in MXFP8, which Blackwell multiplies; in
/// some also with cuBLASLt's epilogues: biases, GELU and its gradient, bias gradients, an addend.
std::vector<ProductCase> productCases();

}  // namespace fuseline::cuda
