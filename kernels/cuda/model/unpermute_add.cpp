// Kernel "unpermute_add": the weighted sum of each token's rows and of the tensors added behind it, rounded once.
// The host checks the map in the first run, like MoEUnpermute.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/unpermute_steps.h"

#include <utility>

namespace fuseline::cuda::kernels {

KernelDef unpermute_add();

namespace {

Result<std::unique_ptr<Kernel>> compileUnpermuteAdd(const CompileRequest& request) {
  Result<UnpermuteAddStep> step = unpermuteAddStep(request);
  if (!step) return step.error();
  return makeUnpermuteForward(std::move(*step), request.device);
}

}  // namespace

KernelDef unpermute_add() {
  return {
      .name = "unpermute_add",
      .phases = {Phase::Forward},
      .supports = supportsUnpermute,
      .compile = compileUnpermuteAdd,
  };
}

}  // namespace fuseline::cuda::kernels
