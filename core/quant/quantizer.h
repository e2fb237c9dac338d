// Quantizer: turns host tensors into quantized ones and back. The reference for every kernel that quantizes.
// All arithmetic is float32: q = cast(x * scale), with one rounding each, saturating.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantized_tensor.h"
#include "core/quant/scale_math.h"
#include "core/support/result.h"
#include "core/tensor/quantizer_spec.h"

#include <cstdint>
#include <optional>
#include <string>

namespace fuseline {

enum class Copies : std::uint8_t { Rowwise, Columnwise, Both };

/// Inputs of a quantizer in addition to the tensor itself.
struct QuantizerInputs {
  /// Delayed scaling: the scale of a whole tensor. Otherwise it follows from the amax.
  std::optional<float> scale;
  /// The amax of the whole tensor over all ranks; default: that of the given tensor.
  std::optional<float> amax;
  /// The same for the transformed tensor, which is quantized columnwise.
  std::optional<float> transformedAmax;
  /// Source of the random bits of stochastic rounding: seed, name of the tensor and direction select a stream, and the
  /// position of the element in the quantized tensor selects the byte.
  std::uint64_t seed = 0;
  std::string name;
};

/// Scales are in compact layout. Both directions are quantized from x itself, in its dtype: a kernel that computes x
/// and quantizes it at once must round to that dtype in between to get the same bits.
/// Errors: x has bytes, or its format does not fit its scaling; a transform needs rows that are a multiple of 16.
Result<QuantizedTensor> quantize(const Tensor& x, const QuantizerSpec& spec, Copies copies,
                                 const QuantizerInputs& inputs = {});

/// Dequantizes, rounded once to the nominal dtype; an inverse transform included.
/// Errors: the tensor was not quantized in this direction.
Result<Tensor> dequantize(const QuantizedTensor& tensor, Usage direction);

/// Whether a GEMM can read a tensor of this shape quantized with this scaling; the verdict has the reason.
Verdict fitsGemm(const TensorSpec& tensor, Scaling scaling, Usage direction);

}  // namespace fuseline
