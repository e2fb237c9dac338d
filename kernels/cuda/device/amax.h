// The amax of a tensor, computed by the blocks of threads that produce it or walk over it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/elements.h"
#include "kernels/cuda/device/quantize.h"

#include <bit>
#include <cstdint>

namespace fuseline::cuda::device {

/// The maximum of a packet's stored magnitudes and the previous maximum. NaN does not count. skipped: first values that
/// are no elements.
template <int kVector>
__device__ float largestMagnitude(Element element, const float (&values)[kVector], int count, float largest,
                                  int skipped = 0) {
  float stored[kVector];
#pragma unroll
  for (int v = 0; v < kVector; ++v) stored[v] = values[v];
  roundTo(element, stored);
#pragma unroll
  for (int v = 0; v < kVector; ++v)
    if (v >= skipped && v < count) largest = largerOf(fabsf(stored[v]), largest);
  return largest;
}

/// The largest over the kThreads threads of a block; NaN loses. Every thread gets it, and all threads call it.
template <int kThreads = kBlockThreads>
__device__ float largestOfBlock(float value, int thread) {
  __shared__ float shared[kThreads / kWarpLanes];
  for (int offset = kWarpLanes / 2; offset > 0; offset /= 2)
    value = largerOf(__shfl_xor_sync(0xffffffffu, value, offset), value);
  if (thread % kWarpLanes == 0) shared[thread / kWarpLanes] = value;
  __syncthreads();
  for (int warp = 0; warp < kThreads / kWarpLanes; ++warp) value = largerOf(shared[warp], value);
  __syncthreads();
  return value;
}

/// The first thread of a block raises an amax to its largest value, which is not negative: such floats are ordered as
/// their bits are.
inline __device__ void raiseTo(float* amax, float largest, int thread) {
  const bool isHigher = thread == 0 && largest > *static_cast<volatile float*>(amax);  // which is never too high
  if (isHigher) atomicMax(reinterpret_cast<int*>(amax), std::bit_cast<int>(largest));
}

/// Updates an amax with the largest of a block's values, none of which is negative. All threads of the block call it.
template <int kThreads = kBlockThreads>
__device__ void raiseAmax(float* amax, float largest, int thread) {
  raiseTo(amax, largestOfBlock<kThreads>(largest, thread), thread);
}

}  // namespace fuseline::cuda::device
