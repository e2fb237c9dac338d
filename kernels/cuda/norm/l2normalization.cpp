// Kernel "L2Normalization": y = x rnorm, rnorm = 1 / sqrt(sum(x^2) + eps); and its backward.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/norm_steps.h"

namespace fuseline::cuda::kernels {

KernelDef l2normalization();

KernelDef l2normalization() { return normKernel("L2Normalization"); }

}  // namespace fuseline::cuda::kernels
