// Kernel "Split": columns of x to several tensors, and of their gradients back into one.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/layout/column_copy.h"

namespace fuseline::cpu::kernels {

KernelDef split();

KernelDef split() {
  return {
      .name = "Split",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = [](const CompileRequest& request) { return makeColumnCopy(request, readSplit(request)); },
  };
}

}  // namespace fuseline::cpu::kernels
