// Attention as steps: by a library that runs its graph as one kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/attention_operands.h"
#include "kernels/cuda/kernel_def.h"

#include <memory>

namespace fuseline::cuda {

/// Errors: the attention, the library or the GPU does not fit; a sentence.
Result<std::unique_ptr<Kernel>> makeFusedAttention(const CompileRequest& request, const AttentionProblem& problem);

/// The same of quantized queries, keys and values, in FP8.
Result<std::unique_ptr<Kernel>> makeFp8Attention(const CompileRequest& request, const AttentionProblem& problem);

}  // namespace fuseline::cuda
