// Kernel "RMSNorm": y = gamma x rstd, rstd = 1 / sqrt(mean(x^2) + eps); and its backward.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/norm_steps.h"

namespace fuseline::cuda::kernels {

KernelDef rmsnorm();

KernelDef rmsnorm() { return normKernel("RMSNorm"); }

}  // namespace fuseline::cuda::kernels
