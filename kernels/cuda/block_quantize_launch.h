// Launches that quantize tensors with a scale for every block of elements, and bring such codes back. Plain C++: the
// kernels stand in block_quantize_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/stream.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cuda {

/// How the blocks of x: [rows, cols] lie; those of a columnwise copy contract rows.
enum class BlockKind : std::uint8_t { Float8Line, Float8Square, MxLine, MxSquare };

/// One copy: codes, and for every block what dequantizes it: a float32, or an E8M0 code of MX blocks. codes null: this
/// copy is not made.
struct BlockCopy {
  std::uint8_t* codes = nullptr;
  std::byte* scales = nullptr;
  device::FloatCode code = device::FloatCode::E4M3;
  device::ScaleRule rule;           // of float32 scales
  bool isTransposed = false;        // codes stand as the transpose of x
  std::int64_t scaleRowStride = 0;  // from a block's scale to that of the block below it in x
  std::int64_t scaleColStride = 0;  // to that of the block beside it
};

struct BlockQuantization {
  const void* x = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  BlockCopy rowwise;
  BlockCopy columnwise;
};
void launchBlockQuantize(const BlockQuantization& quantization, BlockKind kind, Stream stream);

/// out: [rows, cols], rounded once to the element type. A block is blockRows x blockCols elements of out.
struct BlockDequantization {
  BlockCopy copy;
  bool isE8m0 = false;
  std::int64_t blockRows = 1;
  std::int64_t blockCols = 1;
  void* out = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};
void launchBlockDequantize(const BlockDequantization& dequantization, Stream stream);

}  // namespace fuseline::cuda
