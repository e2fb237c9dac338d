// Sums of copies: a thread has an element of dx and adds in float32, in the order of the copies, rounded once.
// Neighboring threads read neighboring elements.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/layout/expand_launch.h"

#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/device/elements.h"

namespace fuseline::cuda {

namespace {

using namespace device;

__global__ void __launch_bounds__(kBlockThreads) sumCopies(const __grid_constant__ CopySums sums) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
#pragma unroll 1
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < sums.count;
       i += stride) {
    const std::int64_t row = i / sums.width;
    const std::int64_t first = row * sums.copies * sums.stride + i % sums.width;
    float sum = 0.0F;
    for (std::int64_t copy = 0; copy < sums.copies; ++copy)
      sum += loadElement(sums.element, sums.dy, first + copy * sums.stride);
    storeElement(sums.element, sums.dx, i, sum);
  }
}

}  // namespace

void launchCopySums(const CopySums& sums, Stream stream) {
  constexpr std::int64_t kMaxBlocks = 1 << 16;
  if (sums.count == 0) return;
  const auto blocks = static_cast<unsigned>(std::min((sums.count + kBlockThreads - 1) / kBlockThreads, kMaxBlocks));
  launch(sumCopies, dim3(blocks), dim3(kBlockThreads), 0, stream, sums);
}

}  // namespace fuseline::cuda
