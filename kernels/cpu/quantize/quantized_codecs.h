// Vectorized quantization: a multiplication by one scale and a cast, in float32, to and from E4M3, E5M2 and E2M1.
// Equal to core/numerics bit for bit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"
#include "core/tensor/element_format.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cpu {

/// out[i] = in[i] * scale, rounded to nearest even, saturated and encoded, for i < n. in: n elements of the function's
/// dtype. out: n encoded values; E2M1 in pairs, the even element in the lower half, and a zero after the last of an odd
/// n.
using QuantizeFunction = void (*)(std::uint8_t* out, const void* in, float scale, std::size_t n);

/// out[i] = decoded in[i] * scale, rounded to the function's dtype, for i < n. in: encoded values as above.
using DequantizeFunction = void (*)(void* out, const std::uint8_t* in, float scale, std::size_t n);

/// The same with a scale for each block of `width` elements; the last block may be shorter. For formats of 8 bits.
using QuantizeBlocksFunction = void (*)(std::uint8_t* out, const void* in, const float* scales, std::size_t width,
                                        std::size_t n);
using DequantizeBlocksFunction = void (*)(void* out, const std::uint8_t* in, const float* scales, std::size_t width,
                                          std::size_t n);

/// The same of rows of n elements, one row after the other, with a scale for each column. For formats of 8 bits.
using QuantizeColumnsFunction = void (*)(std::uint8_t* out, const void* in, const float* scales, std::size_t rows,
                                         std::size_t n);
using DequantizeColumnsFunction = void (*)(void* out, const std::uint8_t* in, const float* scales, std::size_t rows,
                                           std::size_t n);

struct Codecs {
  QuantizeFunction quantize;
  DequantizeFunction dequantize;
  QuantizeBlocksFunction quantizeBlocks;
  DequantizeBlocksFunction dequantizeBlocks;
  QuantizeColumnsFunction quantizeColumns;
  DequantizeColumnsFunction dequantizeColumns;
};

/// Between a format and a floating-point dtype, for the best instruction set of this machine.
const Codecs& codecsOf(ElementFormat format, DType dtype);

}  // namespace fuseline::cpu
