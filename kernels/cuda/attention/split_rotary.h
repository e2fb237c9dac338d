// A Split as a pass over rows that may rotate and quantize its parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/split_rotary_launch.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/quantize/step_copies.h"

#include <memory>
#include <vector>

namespace fuseline::cuda::kernels {

/// A step of a Split, perhaps with a Bias and rotary embeddings.
Result<std::unique_ptr<Kernel>> compileSplitRotary(const CompileRequest& request);
/// Whether it can write these quantized tensors of its parts, never those of gradients; query: with copies.
Verdict canQuantizeParts(const KernelQuery& query);
/// The same for any pass over tokens, whose heads are one row.
Verdict canQuantizeTokens(const KernelQuery& query);

/// The quantized tensors of each work of the step, with memory that is ready.
std::vector<RotaryCodes> rotaryCodes(const StepCopies& copies, Pointers pointers, const DeviceContext& device);

}  // namespace fuseline::cuda::kernels
