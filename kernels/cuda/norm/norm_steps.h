// Norms as steps: shared code of the kernels of RMSNorm, LayerNorm, L2Normalization and their fusions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/norm_step.h"
#include "kernels/cuda/device/norm_data.h"
#include "kernels/cuda/kernel_def.h"

#include <memory>
#include <string>

namespace fuseline::cuda {

/// The kernel of the norm op of this name, forward and backward.
KernelDef normKernel(std::string operation);

/// Forward of the norm that is member `norm` of the step.
Result<std::unique_ptr<Kernel>> makeNormForward(const CompileRequest& request, int norm);

/// Forward of AddExtraInput (member 0), an optional MakeExtraOutput and a norm (the last member).
Result<std::unique_ptr<Kernel>> makeAddNormForward(const CompileRequest& request);

/// The pointers of a norm, and of the sum that it normalizes.
device::NormForward normForwardOf(const NormForwardStep& step, Pointers pointers);

/// Backward of the norm that is member `norm` of the step.
Result<std::unique_ptr<Kernel>> makeNormBackward(const CompileRequest& request, int norm, const NormGradientKeys& keys);

/// Whether these can quantize their result in this way.
Verdict canMakeNormCopies(const KernelQuery& query);

}  // namespace fuseline::cuda
