// Plain data of a quantizer that the host passes to the device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline::cuda::device {

enum class FloatCode : std::uint8_t { E4M3, E5M2 };

struct ScaleRule {
  float epsilon = 0.0f;  // a smaller amax counts as this one
  bool isPowerOfTwo = false;
  float ifInfinite = 0x1.fffffep127f;  // replaces a scale that float32 cannot hold
};

/// One quantized tensor: encoded values, and dequantization scales: one float32, or for every block a float32 or an
/// E8M0 value. codes null: this tensor is not produced.
struct CodedCopy {
  std::uint8_t* codes = nullptr;
  void* scales = nullptr;
  FloatCode code = FloatCode::E4M3;
  ScaleRule rule;                   // of float32 scales
  bool isTransposed = false;        // stored as the transpose of x
  std::int64_t scaleRowStride = 0;  // from a block's scale to the scale of the block below it in x
  std::int64_t scaleColStride = 0;  // to the scale of the block to its right
  std::int64_t scalesInLine = 0;    // scales with stride 1, zero-padded to a multiple of four; 0: no padding
};

/// Granularity of scales: the tensor, or blocks of 1x128, 128x128, 1x32 or 32x32 elements, transposed in columnwise
/// quantized tensors.
enum class CopyKind : std::uint8_t { Tensor, Float8Line, Float8Square, MxLine, MxSquare };

/// The quantized tensors that one op reads; with neither of them the amax alone.
struct CopyPair {
  CodedCopy rowwise;
  CodedCopy columnwise;
  const float* scale = nullptr;  // of a tensor
  float* amax = nullptr;         // of a tensor: updated with its largest magnitude
};

/// The quantized tensors that a kernel produces from a result (fused quantization).
struct QuantizedOutputs {
  static constexpr int kMaxPairs = 4;
  CopyPair pairs[kMaxPairs];
  int numPairs = 0;
  CopyKind kind = CopyKind::Tensor;
  bool isUnrounded = false;  // quantized values and amax follow from float32, not from the stored result
};

}  // namespace fuseline::cuda::device
