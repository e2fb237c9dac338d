// Kernel "gathered_columns": a columnwise tensor from the values and scales that all ranks sent.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantize_steps.h"
#include "kernels/cpu/kernel_def.h"

namespace fuseline::cpu::kernels {

KernelDef gathered_columns();

KernelDef gathered_columns() {
  return {
      .name = "gathered_columns",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        return makeGatheredColumns(request.plan, request.step);
      },
      .readsCodes = true,
  };
}

}  // namespace fuseline::cpu::kernels
