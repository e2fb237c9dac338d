// Kernel "norm_backward_add": backward of MakeExtraOutput and a norm. The gradient of the extra output is added to the
// norm's input gradient before the one rounding.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/norm_steps.h"

namespace fuseline::cuda::kernels {

KernelDef norm_backward_add();

KernelDef norm_backward_add() {
  return {
      .name = "norm_backward_add",
      .phases = {Phase::Backward},
      .compile =
          [](const CompileRequest& request) { return makeNormBackward(request, 1, branchedNormGradients(request)); },
      .supportsCopies = canMakeNormCopies,
  };
}

}  // namespace fuseline::cuda::kernels
