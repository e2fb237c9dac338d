// Scales and casts of tensors with one scale, in the order of float32 operations in which core/quant computes them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/minifloat.h"
#include "kernels/cuda/device/conversions.h"
#include "kernels/cuda/device/quantize_data.h"

#include <bit>
#include <cstdint>

// GPUs before 8.9 have no instructions for FP8, and encode with the integer code of core/numerics, like the host.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define FUSELINE_HAS_FP8_INSTRUCTIONS
#endif

namespace fuseline::cuda::device {

inline __device__ float largestOf(FloatCode code) {
  return code == FloatCode::E4M3 ? E4m3::toFloat(E4m3::kMax) : E5m2::toFloat(E5m2::kMax);
}

inline __device__ bool isFinite(float x) { return x - x == 0.0f; }

constexpr float kLargestFloat = 0x1.fffffep127f;

/// Quantization multiplier of a tensor with this amax; 1 where the amax is 0, infinite or NaN.
inline __device__ float scaleFromAmax(float amax, FloatCode code, const ScaleRule& rule) {
  const float bounded = amax < rule.epsilon ? rule.epsilon : amax;
  if (!isFinite(bounded) || !(bounded > 0.0f)) return 1.0f;
  const float quotient = largestOf(code) / bounded;
  const float scale = isFinite(quotient) ? quotient : rule.ifInfinite;
  return rule.isPowerOfTwo ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) & 0xff800000u) : scale;
}

inline __device__ std::uint8_t encode(float value, FloatCode code) {
  return code == FloatCode::E4M3 ? E4m3::fromFloat(value) : E5m2::fromFloat(value);
}

/// Encodes four numbers, the first in the lowest byte.
template <FloatCode kCode>
__device__ std::uint32_t encodeFour(const float (&x)[4]) {
#ifdef FUSELINE_HAS_FP8_INSTRUCTIONS
  // The same bits as the host's (cuda_fp8.h emits this instruction for saturating casts). Both halves in one piece of
  // assembly: the second conversion then writes next to the first.
  std::uint32_t codes;
  if constexpr (kCode == FloatCode::E4M3)
    asm("{ .reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %2, %1; cvt.rn.satfinite.e4m3x2.f32 high, %4, %3; "
        "mov.b32 %0, {low, high}; }"
        : "=r"(codes)
        : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]));
  else
    asm("{ .reg .b16 low, high; cvt.rn.satfinite.e5m2x2.f32 low, %2, %1; cvt.rn.satfinite.e5m2x2.f32 high, %4, %3; "
        "mov.b32 %0, {low, high}; }"
        : "=r"(codes)
        : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]));
  return codes;
#else
  std::uint32_t codes = 0;
  for (int i = 0; i < 4; ++i) codes |= std::uint32_t{encode(x[i], kCode)} << (8 * i);
  return codes;
#endif
}

/// A NaN as first argument is ignored.
inline __device__ float largerOf(float a, float b) {
#ifdef __CUDA_ARCH__
  return fmaxf(a, b);  // one instruction; b is no NaN
#else
  return a > b ? a : b;
#endif
}

inline __device__ float decode(std::uint8_t code, FloatCode format) {
#ifdef __CUDA_ARCH__
  if (format == FloatCode::E5M2) return floatOfF16(static_cast<std::uint16_t>(code << 8));  // the upper half of an f16
#endif
#ifdef FUSELINE_HAS_FP8_INSTRUCTIONS
  std::uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<std::uint16_t>(code)));
  return floatOfF16(static_cast<std::uint16_t>(halves));
#else
  return format == FloatCode::E4M3 ? E4m3::toFloat(code) : E5m2::toFloat(code);
#endif
}

/// The next step's scale from a history's amax; unchanged where the amax is 0, infinite or NaN.
inline __device__ float delayedScale(float amax, float previous, float scaledLargest) {
  if (!isFinite(amax) || !(amax > 0.0f)) return previous;
  const float scale = scaledLargest / amax;
  return isFinite(scale) ? scale : kLargestFloat;
}

}  // namespace fuseline::cuda::device
