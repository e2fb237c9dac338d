// Quantized copies as the plan lays them out, in the terms of the kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"
#include "kernels/cuda/device/nvfp4_data.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/stream/stream.h"

#include <string>

namespace fuseline::cuda {

device::FloatCode floatCodeOf(ElementFormat format);

/// dtype: of the tensor. One scale for the whole tensor may be as large as float32 allows.
device::ScaleRule scaleRuleOf(const QuantizerSpec& quantizer, DType dtype);

device::CopyKind copyKindOf(Scaling scaling);

/// spec: of a quantized tensor. memory: nullptr if it is not produced. The caller sets the scale rule.
device::CodedCopy codedCopyOf(const TensorSpec& spec, std::byte* memory);

/// The same of a copy in NVFP4. How it is rounded is up to the caller.
device::Nvfp4Copy nvfp4CopyOf(const TensorSpec& spec, std::byte* memory);
bool hasSquares(Scaling scaling);
/// For the quantized tensor with this name.
device::RoundingBytes roundingBytesOf(const std::string& name, Direction direction);

/// Writes the numbers of a copy, rounded once to the dtype of its tensor, as its codes stand.
void launchDecode(const TensorSpec& spec, const std::byte* memory, std::byte* out, Stream stream);

}  // namespace fuseline::cuda
