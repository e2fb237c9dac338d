// Kernel "norm_backward_add": backward of MakeExtraOutput and a norm. The gradient of the extra output is added to the
// norm's input gradient before the one rounding.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm_steps.h"

namespace fuseline::cuda::kernels {

namespace {

constexpr int kBranch = 0;  // MakeExtraOutput
constexpr int kNorm = 1;

}  // namespace

KernelDef norm_backward_add();

KernelDef norm_backward_add() {
  return {
      .name = "norm_backward_add",
      .phases = {Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile =
          [](const CompileRequest& request) {
            return makeNormBackward(request, kNorm,
                                    {.gradInput = {kBranch, OperandKind::GradInput, 0},
                                     .extraGradient = {kBranch, OperandKind::GradOutput, 1}});
          },
  };
}

}  // namespace fuseline::cuda::kernels
