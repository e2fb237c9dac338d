// The backend that the tests of whole plans on CUDA kernels run on: the SIMT harness, or the first GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "core/runtime/backend.h"
#include "core/support/result.h"

#include <algorithm>
#include <memory>
#include <string>

namespace fuseline::testing {

/// Made at the first call. Defined by whom a test program is for: tests/support/simt or tests/kernels/gpu. Errors:
/// there is no GPU, with the reason.
Result<std::shared_ptr<Backend>> cudaTestBackend();

/// One whose generated code is compiled: that of a GPU always is, where NVRTC is there.
Result<std::shared_ptr<Backend>> compilingCudaTestBackend();

/// Whether its products are those of the reference but for the rounding of results. The harness's are. A GPU keeps
/// fewer bits of a sum of FP8 products (about 14 on Hopper), so that codes which are made of results may differ by one,
/// and cuBLASLt's GELU is as good as the hardware's tanh.
bool multipliesExactly();

/// A tolerance for the harness, or for a GPU.
inline double toleranceFor(double exactProducts, double productsOfGpu) {
  return multipliesExactly() ? exactProducts : std::max(exactProducts, productsOfGpu);
}

/// For a GPU: results that went through products of codes, where of many factors some are the next code; codes made of
/// results, where E5M2's are up to 1/4 apart; and results that went through cuBLASLt's GELU, if that takes
/// tanh.approx.f32, good to 2^-11 (PTX ISA), in whose tail large numbers cancel.
inline constexpr double kProductsOfCodes = 4 * 1.6e-2;
inline constexpr double kCodesOfProducts = 0.25;
inline constexpr double kActivationsOfProducts = 8 * 0x1p-11;

/// Whether it runs the products of this recipe, "" for none: a GPU may be too old or too new for them. The harness runs
/// all.
inline Verdict runsRecipe(const std::string& name) {
  const Result<std::shared_ptr<Backend>> backend = cudaTestBackend();
  if (!backend) return Verdict::no(backend.error().message);
  const auto capability = parseCapability((*backend)->device().architecture);
  return name.empty() || !capability ? Verdict::yes() : supports(*findRecipe(name), *capability);
}

}  // namespace fuseline::testing
