// Norms as steps: shared code of the kernels of RMSNorm, LayerNorm, L2Normalization and their fusions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/norm_step.h"
#include "kernels/cpu/kernel_def.h"
#include "kernels/cpu/norm/norm.h"

#include <memory>
#include <string>

namespace fuseline::cpu {

/// The kernel of the norm op of this name, forward and backward.
KernelDef normKernel(std::string operation);

/// Forward of the norm that is member `norm` of the step.
Result<std::unique_ptr<Kernel>> makeNormForward(const CompileRequest& request, int norm);

/// Forward of AddExtraInput (member 0), an optional MakeExtraOutput and a norm (the last member).
Result<std::unique_ptr<Kernel>> makeAddNormForward(const CompileRequest& request);

/// Forward of Embedding (member 0), an optional MakeExtraOutput and a norm (the last member).
Result<std::unique_ptr<Kernel>> makeEmbeddingNormForward(const CompileRequest& request);

/// Backward of the norm that is member `norm` of the step.
Result<std::unique_ptr<Kernel>> makeNormBackward(const CompileRequest& request, int norm, const NormGradientKeys& keys);

}  // namespace fuseline::cpu
