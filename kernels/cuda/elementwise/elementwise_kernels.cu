// Elementwise programs on the device, interpreted; and the sums of their parts.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <cuda_runtime.h>

#include "kernels/cuda/device/interpreter.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// Number of adjacent items of a block.
constexpr unsigned kItems = kWarpLanes;
/// Number of an item's terms summed concurrently: each thread has few terms left, which it would wait for one by one.
constexpr unsigned kManyTerms = kWarpLanes;
constexpr unsigned kFewTerms = kBlockThreads / kItems;

template <int kVector>
__global__ void __launch_bounds__(kBlockThreads)
    interpretProgram(const __grid_constant__ Program program, Grid grid, float* columnParts, float* rowParts) {
  Interpreter<kVector> interpreter(program);
  walkGrid<Interpreter<kVector>, kVector>(interpreter, grid, columnParts, rowParts);
}

__device__ void storeItem(const PartSums& sums, std::int64_t item, float value) {
  if (sums.behind && item >= sums.cols) return storeElement(sums.to.element, sums.behind, item - sums.cols, value);
  storeElement(sums.to.element, sums.to.data, columnOf(sums.to, item, sums.cols), value);
}

__global__ void __launch_bounds__(kItems* kManyTerms) sumParts(const PartSums sums) {
  __shared__ float shared[kManyTerms][kItems + 1];  // one more, so that the threads of a warp do not meet in a bank
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kItems;
  float sum = 0.0f;
  for (std::int64_t term = threadIdx.y; term < sums.terms && first + threadIdx.x < sums.items; term += blockDim.y)
    sum += sums.parts[(first + threadIdx.x) * sums.itemStride + term * sums.termStride];
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  for (unsigned i = threadIdx.y; i < kItems; i += blockDim.y) {  // a warp has an item
    sum = sumOverLanes(threadIdx.x < blockDim.y ? shared[threadIdx.x][i] : 0.0f, kWarpLanes);
    if (threadIdx.x == 0 && first + i < sums.items) storeItem(sums, first + i, sum);
  }
}

/// One block for a single item: a scalar, or the only column of a row.
__global__ void __launch_bounds__(kBlockThreads) sumAllParts(const PartSums sums) {
  __shared__ float shared[kBlockThreads / kWarpLanes];
  float sum = 0.0f;
  for (std::int64_t term = threadIdx.x; term < sums.terms; term += kBlockThreads)
    sum += sums.parts[term * sums.termStride];
  sum = sumOverLanes(sum, kWarpLanes);
  if (threadIdx.x % kWarpLanes == 0) shared[threadIdx.x / kWarpLanes] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kBlockThreads / kWarpLanes; ++warp) sum += shared[warp];
  const std::int64_t index = sums.to.access == Access::Scalar ? 0 : columnOf(sums.to, 0, sums.cols);
  storeElement(sums.to.element, sums.to.data, index, sum);
}

}  // namespace

void launchProgram(const Program& program, const ElementwiseShape& shape, float* parts, Stream stream) {
  const dim3 blocks(shape.blocksX, shape.blocksY);
  const dim3 threads(shape.threadsX, shape.threadsY());
  float* const rowParts = parts + numColumnParts(program, shape);
  const auto kernel = shape.vector == 1 ? interpretProgram<1> : interpretProgram<kVectorWidth>;
  launch(kernel, blocks, threads, 0, stream, program, shape.grid, parts, rowParts);
}

void launchPartSums(const PartSums& sums, Stream stream) {
  if (sums.items == 0) return;
  if (sums.items == 1) return launch(sumAllParts, dim3(1), dim3(kBlockThreads), 0, stream, sums);
  const auto blocks = static_cast<unsigned>((sums.items + kItems - 1) / kItems);
  launch(sumParts, dim3(blocks), dim3(kItems, sums.terms > kFewTerms ? kManyTerms : kFewTerms), 0, stream, sums);
}

}  // namespace fuseline::cuda
