// Kernel "RMSNorm": y = gamma x rstd, rstd = 1 / sqrt(mean(x^2) + eps); and its backward.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/norm_steps.h"

namespace fuseline::cpu::kernels {

KernelDef rmsnorm();

KernelDef rmsnorm() {
  return {
      .name = "RMSNorm",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile =
          [](const CompileRequest& request) {
            if (request.step.phase == Phase::Forward) return makeNormForward(request, 0);
            return makeNormBackward(request, 0, {.gradInput = {0, OperandKind::GradInput, 0}, .extraGradient = {-1}});
          },
  };
}

}  // namespace fuseline::cpu::kernels
