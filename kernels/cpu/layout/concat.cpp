// Kernel "Concat": several tensors to columns of y, and columns of its gradient to theirs.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/layout/column_copy.h"

namespace fuseline::cpu::kernels {

KernelDef concat();

KernelDef concat() {
  return {
      .name = "Concat",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = [](const CompileRequest& request) { return makeColumnCopy(request, readConcat(request)); },
  };
}

}  // namespace fuseline::cpu::kernels
