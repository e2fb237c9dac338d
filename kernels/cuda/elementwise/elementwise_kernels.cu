// Elementwise programs on the device, interpreted; and the sums of their parts.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/elementwise/part_sums.cuh"
#include "kernels/cuda/stream/launch.h"

#include <cuda_runtime.h>

#include "kernels/cuda/device/interpreter.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// Number of adjacent items of a block.
constexpr int kItems = kWarpLanes;
/// Number of an item's terms summed concurrently: each thread has few terms left, which it would wait for one by one.
constexpr int kManyTerms = kWarpLanes;
constexpr int kFewTerms = kBlockThreads / kItems;

/// Blocks that a multiprocessor has registers for. Without a number 8.9 has fewer registers for each than they need.
constexpr int kInterpretersAtOnce = 5;

template <int kVector, bool kIsShifted = false>
__global__ void __launch_bounds__(kBlockThreads, kInterpretersAtOnce)
    interpretProgram(const __grid_constant__ Program program, Grid grid, float* columnParts, float* rowParts) {
  Interpreter<kVector, kIsShifted> interpreter(program);
  walkGrid<Interpreter<kVector, kIsShifted>, kVector, kIsShifted>(interpreter, grid, columnParts, rowParts);
}

template <int kTerms>
__global__ void __launch_bounds__(kItems* kTerms) sumParts(const PartSums sums) {
  sumItems<kItems, kTerms>(sums, static_cast<std::int64_t>(blockIdx.x) * kItems, static_cast<int>(threadIdx.x));
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

auto kernelOf(const ElementwiseShape& shape) {
  if (shape.vector == 1) return interpretProgram<1>;
  return shape.isShifted ? interpretProgram<kVectorWidth, true> : interpretProgram<kVectorWidth>;
}

}  // namespace

void launchProgram(const Program& program, const ElementwiseShape& shape, float* parts, Stream stream) {
  const dim3 blocks(shape.blocksX, shape.blocksY);
  const dim3 threads(shape.threadsX, shape.threadsY());
  float* const rowParts = parts + numColumnParts(program, shape);
  launch(kernelOf(shape), blocks, threads, 0, stream, program, shape.grid, parts, rowParts);
}

void launchPartSums(const PartSums& sums, Stream stream) {
  if (sums.items == 0) return;
  if (sums.items == 1) return launch(sumAllParts, dim3(1), dim3(kBlockThreads), 0, stream, sums);
  const auto blocks = static_cast<unsigned>((sums.items + kItems - 1) / kItems);
  if (sums.terms > kFewTerms)
    launch(sumParts<kManyTerms>, dim3(blocks), dim3(kItems * kManyTerms), 0, stream, sums);
  else
    launch(sumParts<kFewTerms>, dim3(blocks), dim3(kItems * kFewTerms), 0, stream, sums);
}

}  // namespace fuseline::cuda
