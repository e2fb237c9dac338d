// Kernel "LayerNorm": y = gamma (x - mean) rstd + beta; and its backward.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/norm/norm_steps.h"

namespace fuseline::cpu::kernels {

KernelDef layernorm();

KernelDef layernorm() { return normKernel("LayerNorm"); }

}  // namespace fuseline::cpu::kernels
