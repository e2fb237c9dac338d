// Launches that quantize tensors with one scale per block of elements, and dequantize them. Plain C++: the kernels are
// in block_quantize_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>
#include <span>

namespace fuseline::cuda {

struct BlockQuantization {
  const void* x = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  device::CodedCopy rowwise;
  device::CodedCopy columnwise;
};
/// kind: with blocks. tensors: all with the same element type.
void launchBlockQuantize(std::span<const BlockQuantization> tensors, device::CopyKind kind, Stream stream);

/// out, codes: [rows, cols]; out is rounded once to the element type. A block of values with one scale is blockRows x
/// blockCols, both powers of two; strides: from a block's scale to that of the block below and to its right.
struct BlockDequantization {
  const std::uint8_t* codes = nullptr;
  const void* scales = nullptr;  // float32, or E8M0
  device::FloatCode code = device::FloatCode::E4M3;
  bool isE8m0 = false;
  std::int64_t blockRows = 1;
  std::int64_t blockCols = 1;
  std::int64_t scaleRowStride = 1;
  std::int64_t scaleColStride = 1;
  void* out = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};
void launchBlockDequantize(const BlockDequantization& dequantization, Stream stream);

}  // namespace fuseline::cuda
