// Sums of parts by a block of threads, in an order that depends on the number of threads only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/elementwise/elementwise_launch.h"

#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/cuda/device/elementwise.h"

namespace fuseline::cuda {

inline __device__ void storeItem(const PartSums& sums, std::int64_t item, float value) {
  using namespace device;
  if (sums.behind && item >= sums.cols) return storeElement(sums.to.element, sums.behind, item - sums.cols, value);
  storeElement(sums.to.element, sums.to.data, columnOf(sums.to, item, sums.cols), value);
}

/// kItems adjacent items from `first` on, each by kLanes threads, at most 32; thread: index in the block, all of whose
/// kItems * kLanes threads call it.
template <int kItems, int kLanes>
__device__ void sumItems(const PartSums& sums, std::int64_t first, int thread) {
  using device::kWarpLanes;
  __shared__ float shared[kLanes][kItems + 1];  // one more, so that the threads of a warp do not meet in a bank
  const int item = thread % kItems;
  float sum = 0.0f;
  if (first + item < sums.items) {
#pragma unroll 4
    for (std::int64_t term = thread / kItems; term < sums.terms; term += kLanes)
      sum += sums.parts[(first + item) * sums.itemStride + term * sums.termStride];
  }
  shared[thread / kItems][item] = sum;
  __syncthreads();
  const int lane = thread % kWarpLanes;
  for (int i = thread / kWarpLanes; i < kItems; i += kItems * kLanes / kWarpLanes) {  // a warp has an item
    sum = device::sumOverLanes(lane < kLanes ? shared[lane][i] : 0.0f, kWarpLanes);
    if (lane == 0 && first + i < sums.items) storeItem(sums, first + i, sum);
  }
  __syncthreads();
}

}  // namespace fuseline::cuda
