// Attention as steps: by products of cuBLASLt and a softmax between them.
// SPDX-License-Identifier: Apache-2.0
// Right for every mask, dtype and size, and slow beside kernels that keep scores on the chip: these go through memory.
#pragma once

#include "kernels/cuda/attention/attention_operands.h"
#include "kernels/cuda/kernel_def.h"

#include <memory>
#include <string>

namespace fuseline::cuda {

/// why: of the way it is computed, for Kernel::ways.
Result<std::unique_ptr<Kernel>> makeAttentionForward(const CompileRequest& request, const AttentionProblem& problem,
                                                     std::string why);
Result<std::unique_ptr<Kernel>> makeAttentionBackward(const CompileRequest& request, const AttentionProblem& problem,
                                                      std::string why);

/// In the phase of the step: by cuDNN where it has such an attention, else by products and a softmax.
Result<std::unique_ptr<Kernel>> makeAttention(const CompileRequest& request, const AttentionProblem& problem);

}  // namespace fuseline::cuda
