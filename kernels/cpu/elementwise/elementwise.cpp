// Kernel "elementwise": any op or chain of ops that works element by element, forward or backward.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/strip_step.h"

namespace fuseline::cpu::kernels {

KernelDef elementwise();

KernelDef elementwise() {
  return {
      .name = "elementwise",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery& query) { return areElementwise(query.graph, query.members); },
      .compile =
          [](const CompileRequest& request) {
            return makeStripKernel(request, composeProgram(request.graph, request.step));
          },
      .writesCopies = true,
  };
}

}  // namespace fuseline::cpu::kernels
