// Quantized tensors as plans store them: values, scales and amax in one piece of memory (core/tensor/scaling.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantizer.h"

#include <cstddef>
#include <vector>

namespace fuseline {

/// The content of a quantized tensor's memory; the result has this direction alone. spec.quantized must be set, without
/// groups.
QuantizedTensor fromMemory(const TensorSpec& spec, const std::byte* memory);

/// The inverse: spec.bytes() bytes, padding zero.
void toMemory(const QuantizedTensor& tensor, const TensorSpec& spec, std::byte* memory);

/// Quantizes x to `spec`, which has no groups.
/// Errors: those of quantize().
Result<void> quantizeToMemory(const Tensor& x, const QuantizerSpec& quantizer, const QuantizerInputs& inputs,
                              const TensorSpec& spec, std::byte* memory);

/// Dequantizes a quantized tensor without groups, rounded to the tensor's dtype.
Tensor dequantizedTensor(const TensorSpec& spec, const std::byte* memory);

/// The dequantized values of all groups, before any rounding to the dtype; an inverse transform included.
std::vector<double> dequantizedValues(const TensorSpec& spec, const std::byte* memory);

}  // namespace fuseline
