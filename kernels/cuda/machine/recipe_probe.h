// Recipes that cuBLASLt multiplies on the GPU at hand: its own answers about the GEMMs of a linear layer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "kernels/cuda/gemm/cublaslt_session.h"
#include "kernels/cuda/gemm/gemm.h"

#include <string>
#include <vector>

namespace fuseline::cuda {

/// A GEMM of a linear layer as it is passed to the library.
struct RecipeProduct {
  GemmRole role;
  GemmProblem problem;
};
/// The GEMMs that a recipe quantizes, with large matrices. GEMMs whose factors every GPU dequantizes are left out.
std::vector<RecipeProduct> productsOf(const Recipe& recipe, ComputeCapability gpu);

/// Asks the library about all of them. No names the GEMM, and the supported recipes. Nothing is launched. Throws
/// DeviceFault.
Verdict probeRecipe(const CublasLtSession& session, const Recipe& recipe, ComputeCapability gpu);

}  // namespace fuseline::cuda
