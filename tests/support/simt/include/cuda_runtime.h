// Replaces the CUDA runtime's header when device code is compiled for the SIMT harness.
// SPDX-License-Identifier: Apache-2.0
// It has only the names that the project's kernels use: a kernel with a new one does not compile here.
#pragma once

#include "tests/support/simt/simt.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
// Blocks run one after the other, so one instance is enough.
#define __shared__ static

#define FUSELINE_READS(address, bytes) fuseline::simt::access(address, bytes, fuseline::simt::Access::Read)
#define FUSELINE_WRITES(address, bytes) fuseline::simt::access(address, bytes, fuseline::simt::Access::Write)
#define FUSELINE_DYNAMIC_SHARED(name) float* const name = fuseline::simt::dynamicShared()

using dim3 = fuseline::simt::Dim3;

#define threadIdx (fuseline::simt::place().threadIdx)
#define blockIdx (fuseline::simt::place().blockIdx)
#define blockDim (fuseline::simt::place().blockDim)
#define gridDim (fuseline::simt::place().gridDim)

inline void __syncthreads(std::source_location where = std::source_location::current()) {
  fuseline::simt::syncThreads(where);
}

/// Only whole warps shuffle in this project.
inline float shuffled(float value, unsigned source, std::source_location where) {
  return std::bit_cast<float>(
      static_cast<std::uint32_t>(fuseline::simt::exchange(std::bit_cast<std::uint32_t>(value), source, where)));
}

inline float __shfl_xor_sync(unsigned, float value, int laneMask,
                             std::source_location where = std::source_location::current()) {
  return shuffled(value, fuseline::simt::lane() ^ static_cast<unsigned>(laneMask), where);
}

inline int __shfl_xor_sync(unsigned, int value, int laneMask,
                           std::source_location where = std::source_location::current()) {
  const unsigned source = fuseline::simt::lane() ^ static_cast<unsigned>(laneMask);
  return static_cast<int>(fuseline::simt::exchange(static_cast<unsigned>(value), source, where));
}

inline double __shfl_xor_sync(unsigned, double value, int laneMask,
                              std::source_location where = std::source_location::current()) {
  const unsigned source = fuseline::simt::lane() ^ static_cast<unsigned>(laneMask);
  return std::bit_cast<double>(fuseline::simt::exchange(std::bit_cast<std::uint64_t>(value), source, where));
}

/// Within the `width` lanes that a lane is among, a power of two.
inline float __shfl_sync(unsigned, float value, int source, int width,
                         std::source_location where = std::source_location::current()) {
  const auto mask = static_cast<unsigned>(width) - 1U;
  return shuffled(value, (fuseline::simt::lane() & ~mask) | (static_cast<unsigned>(source) & mask), where);
}

/// Four of the eight bytes of both words, x's first; a selector has four bits for each.
inline std::uint32_t __byte_perm(std::uint32_t x, std::uint32_t y, std::uint32_t selectors) {
  const std::uint64_t bytes = x | std::uint64_t{y} << 32U;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned selected = selectors >> (4 * i) & 7U;
    result |= static_cast<std::uint32_t>(bytes >> (8 * selected) & 0xffU) << (8 * i);
  }
  return result;
}

/// A cycle a nanosecond.
inline long long clock64() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline int atomicMax(int* address, int value) {
  const int old = *address;
  *address = std::max(old, value);
  return old;
}

inline unsigned long long atomicAdd(unsigned long long* address, unsigned long long value) {
  const unsigned long long old = *address;
  *address += value;
  return old;
}

// The device's own spelling of std::fma for float32, in one rounding.
using std::fmaf;
