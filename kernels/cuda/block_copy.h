// Quantized copies as the plan lays them out, in the terms of the kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"
#include "kernels/cuda/block_quantize_launch.h"

namespace fuseline::cuda {

device::FloatCode floatCodeOf(ElementFormat format);

/// Of a scaling with blocks.
BlockKind blockKindOf(Scaling scaling);

/// spec: of a copy that is quantized with blocks. memory: nullptr where the copy is not made.
BlockCopy blockCopyOf(const TensorSpec& spec, std::byte* memory);

}  // namespace fuseline::cuda
