// A Split as a pass over rows that may rotate and quantize its parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/kernel_def.h"

#include <memory>

namespace fuseline::cuda::kernels {

/// A step of a Split, perhaps with a Bias and rotary embeddings.
Result<std::unique_ptr<Kernel>> compileSplitRotary(const CompileRequest& request);
/// Whether it can write these quantized tensors of its parts; query: with copies.
Verdict canQuantizeParts(const KernelQuery& query);

}  // namespace fuseline::cuda::kernels
