// Kernel "Split": columns of x to several tensors, and of their gradients back into one.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/split_rotary.h"
#include "kernels/cpu/layout/column_copy.h"

namespace fuseline::cpu::kernels {

KernelDef split();

KernelDef split() {
  return {
      .name = "Split",
      .phases = {Phase::Forward, Phase::Backward},
      .compile =
          [](const CompileRequest& request) {
            return request.step.copies.empty() ? makeColumnCopy(request, readSplit(request))
                                               : compileSplitRotary(request);
          },
      .writesCopies = true,
      .writesGradientCopies = false,
  };
}

}  // namespace fuseline::cpu::kernels
