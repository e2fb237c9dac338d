// Kernel "accumulate": the sum of the gradients that meet at a branch, in float32, rounded once.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/sum_program.h"
#include "kernels/cpu/elementwise/strip_step.h"

namespace fuseline::cpu::kernels {

KernelDef accumulate();

KernelDef accumulate() {
  return {
      .name = "accumulate",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = [](const CompileRequest& request) { return makeStripKernel(request, sumProgram(request.step)); },
  };
}

}  // namespace fuseline::cpu::kernels
