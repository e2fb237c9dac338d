// Conversions between float32 and 16-bit formats: device instructions, or the host's arithmetic where there are none.
// SPDX-License-Identifier: Apache-2.0
// One instruction converts one or two numbers; the integer code of core/numerics takes about fifteen, which would slow
// down memory-bound kernels. Results are bitwise identical except for NaN: the device converts every NaN to 0x7fff.
#pragma once

#include "core/numerics/bf16.h"
#include "core/numerics/f16.h"

#include <cstdint>

namespace fuseline::cuda::device {

inline __device__ float floatOfF16(std::uint16_t bits) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  return f16ToFloat(bits);
#endif
}

/// The first one in the lower half.
inline __device__ std::uint32_t f16PairOf(float first, float second) {
#ifdef __CUDA_ARCH__
  std::uint32_t bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
#else
  return floatToF16(first) | static_cast<std::uint32_t>(floatToF16(second)) << 16;
#endif
}

/// The first one in the lower half.
inline __device__ std::uint32_t bf16PairOf(float first, float second) {
#ifdef __CUDA_ARCH__
  std::uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
#else
  return floatToBf16(first) | static_cast<std::uint32_t>(floatToBf16(second)) << 16;
#endif
}

// Converts one number with the instruction for two: the bf16 instruction for one number is slow.

inline __device__ std::uint16_t f16OfFloat(float value) { return static_cast<std::uint16_t>(f16PairOf(value, 0.0f)); }
inline __device__ std::uint16_t bf16OfFloat(float value) { return static_cast<std::uint16_t>(bf16PairOf(value, 0.0f)); }

}  // namespace fuseline::cuda::device
