// The backend that the tests of whole plans on CUDA kernels run on: the SIMT harness, or the first GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "core/runtime/backend.h"
#include "core/support/result.h"

#include <memory>
#include <string>

namespace fuseline::testing {

/// Made at the first call. Defined by whom a test program is for: tests/support/simt or tests/kernels/gpu. Errors:
/// there is no GPU, with the reason.
Result<std::shared_ptr<Backend>> cudaTestBackend();

/// Whether it runs the products of this recipe, "" for none: a GPU may be too old or too new for them. The harness runs
/// all.
inline Verdict runsRecipe(const std::string& name) {
  const Result<std::shared_ptr<Backend>> backend = cudaTestBackend();
  if (!backend) return Verdict::no(backend.error().message);
  const auto capability = parseCapability((*backend)->device().architecture);
  return name.empty() || !capability ? Verdict::yes() : supports(*findRecipe(name), *capability);
}

}  // namespace fuseline::testing
