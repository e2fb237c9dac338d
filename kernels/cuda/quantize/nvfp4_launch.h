// Launches that quantize tensors to NVFP4 and dequantize them. Plain C++: the kernels are in nvfp4_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/nvfp4_data.h"
#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>
#include <span>

namespace fuseline::cuda {

/// x: [rows, cols]. The rowwise quantized tensor has x's orientation, the columnwise one is transposed.
struct Nvfp4Quantization {
  const void* x = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  device::Nvfp4Copy rowwise;
  device::Nvfp4Copy columnwise;
  /// Blocks of 16 x 16 with the same scales in both quantized tensors, and so without a transform; otherwise 1 x 16.
  bool hasSquares = false;
  const float* knownAmax = nullptr;  // of x; null: it is computed first
  const float* knownTransformedAmax = nullptr;
};
/// Writes the amaxes only, of copies that have codes; these are not used.
void launchNvfp4Amaxes(const Nvfp4Quantization& tensor, Stream stream);
/// Writes encoded values, scales of blocks and amaxes. Reads x twice if an amax must be computed.
void launchNvfp4Quantize(std::span<const Nvfp4Quantization> tensors, Stream stream);

/// out: [rows, cols], in the stored orientation, rounded once to the element type.
struct Nvfp4Dequantization {
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* scales = nullptr;
  const float* amax = nullptr;
  bool hasSquares = false;
  bool isTransformed = false;
  void* out = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};
void launchNvfp4Dequantize(const Nvfp4Dequantization& dequantization, Stream stream);

/// Multipliers of a GEMM of quantized factors that are known on the device only: two floats, alpha including the scales
/// of both tensors, and 1 or 0 for an addend.
struct Nvfp4Factors {
  const float* aAmax = nullptr;
  const float* bAmax = nullptr;
  float alpha = 1.0f;
  bool hasAddend = false;
  float* to = nullptr;
};
void launchNvfp4Factors(const Nvfp4Factors& factors, Stream stream);

}  // namespace fuseline::cuda
