// Kernel "elementwise": any op or chain of ops that works element by element, forward or backward.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/elementwise_step.h"
#include "kernels/cuda/quantize/step_copies.h"

namespace fuseline::cuda::kernels {

KernelDef elementwise();

KernelDef elementwise() {
  return {
      .name = "elementwise",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery& query) { return areElementwise(query.graph, query.members); },
      .compile =
          [](const CompileRequest& request) {
            return makeElementwiseKernel(request, composeProgram(request.graph, request.step));
          },
      .supportsCopies = canMakeCopies,
  };
}

}  // namespace fuseline::cuda::kernels
