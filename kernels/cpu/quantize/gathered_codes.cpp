// Kernel "gathered_codes": the quantized tensors of GEMMs from the encoded values that all ranks sent.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/quantize_steps.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/quantize/quantized_copy.h"

namespace fuseline::cpu::kernels {

KernelDef gathered_codes();

KernelDef gathered_codes() {
  return {
      .name = "gathered_codes",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = [](const CompileRequest& request) -> Result<std::unique_ptr<Kernel>> {
        return makeGatheredCodes(request.plan, request.step, transposeCodes);
      },
      .readsCodes = true,
  };
}

}  // namespace fuseline::cpu::kernels
