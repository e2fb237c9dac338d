// The backend that the tests of whole plans on CUDA kernels run on: the SIMT harness, or the first GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "core/runtime/backend.h"
#include "core/support/result.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <memory>
#include <string>

namespace fuseline::testing {

/// Made at the first call. Defined by whom a test program is for: tests/support/simt or tests/kernels/gpu. Errors:
/// there is no GPU, with the reason.
Result<std::shared_ptr<Backend>> cudaTestBackend();

/// A backend with compiled generated code: that of a GPU always is, if NVRTC is available.
Result<std::shared_ptr<Backend>> compilingCudaTestBackend();

/// Whether its GEMMs equal those of the reference except for the rounding of results. The harness's do, unless the
/// environment has FUSELINE_PRODUCTS_OF_A_GPU. A GPU keeps fewer bits of a sum of FP8 products (about 14 on Hopper), so
/// that values quantized from results may differ by one step, and cuBLASLt's GELU may be as precise as the hardware's
/// tanh.
bool multipliesExactly();

/// Tolerance of results from cuBLASLt's GELU, whose tail is a difference of large numbers. exact: for exact GEMMs.
inline double toleranceOfActivations(double exact) { return multipliesExactly() ? exact : std::max(exact, 0x1p-7); }

/// Empty, or a difference between results that were computed from quantized values, or are quantized themselves. exact:
/// for exact GEMMs. On a GPU an element may be the adjacent encoded value, in E5M2 a quarter away, but only few are:
/// inNorm bounds their share.
inline std::string differenceOfCodes(const RunResults& actual, const RunResults& expected, double exact,
                                     double inNorm = 1e-2) {
  if (multipliesExactly()) return firstDifference(actual, expected, exact);
  const std::string far = firstDifference(actual, expected, 0.25);
  return far.empty() ? firstDifferenceInNorm(actual, expected, inNorm) : far;
}

/// Whether it runs the GEMMs of this recipe, "" for none: a GPU may be too old or too new for them. The harness runs
/// all.
inline Verdict runsRecipe(const std::string& name) {
  const Result<std::shared_ptr<Backend>> backend = cudaTestBackend();
  if (!backend) return Verdict::no(backend.error().message);
  return name.empty() ? Verdict::yes() : (*backend)->multiplies(*Recipe::create(*findRecipe(name)));
}

}  // namespace fuseline::testing
