// Kernel "delayed_scaling_update": the scales of the next step.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantize_steps.h"
#include "kernels/cpu/kernel_def.h"

namespace fuseline::cpu::kernels {

KernelDef delayed_scaling_update();

KernelDef delayed_scaling_update() {
  return {
      .name = "delayed_scaling_update",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        return makeScaleUpdate(request.plan, request.step);
      },
  };
}

}  // namespace fuseline::cpu::kernels
