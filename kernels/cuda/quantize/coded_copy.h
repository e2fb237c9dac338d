// Quantized tensors in the plan's layout, in the terms of the kernels.
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

/// The same for a tensor in NVFP4. The caller sets the rounding.
device::Nvfp4Copy nvfp4CopyOf(const TensorSpec& spec, std::byte* memory);
bool hasSquares(Scaling scaling);
/// For the quantized tensor with this name.
device::RoundingBytes roundingBytesOf(const std::string& name, Usage direction);

/// Dequantizes in the stored orientation, rounded once to the dtype of the tensor.
void launchDecode(const TensorSpec& spec, const std::byte* memory, std::byte* out, Stream stream);

}  // namespace fuseline::cuda
