// Kernel "add_norm": AddExtraInput, an optional MakeExtraOutput, and a norm in one pass over the rows. The sum is
// rounded before it is normalized, so the result equals that of the separate ops.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/norm_steps.h"

namespace fuseline::cuda::kernels {

KernelDef add_norm();

KernelDef add_norm() {
  return {
      .name = "add_norm",
      .phases = {Phase::Forward},
      .compile = makeAddNormForward,
      .supportsCopies = canMakeNormCopies,
  };
}

}  // namespace fuseline::cuda::kernels
