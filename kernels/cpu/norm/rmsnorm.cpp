// Kernel "RMSNorm": y = gamma x rstd, rstd = 1 / sqrt(mean(x^2) + eps); and its backward.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/norm/norm_steps.h"

namespace fuseline::cpu::kernels {

KernelDef rmsnorm();

KernelDef rmsnorm() { return normKernel("RMSNorm"); }

}  // namespace fuseline::cpu::kernels
