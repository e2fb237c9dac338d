// AdamW of many parameters in one launch: a packet of four elements a thread, in strides over the parameter of the
// block's last index. One thread counts the updates before, so that a recorded launch can be replayed. The norm of the
// gradients is added in an order that depends on their sizes alone: the same bits in every run.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/adamw_launch.h"

#include "kernels/cuda/stream/launch.h"

#include <algorithm>
#include <cmath>

#include <cuda_runtime.h>

#include "kernels/cuda/device/elementwise.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr int kAdamWVector = 4;
/// Enough threads to hide the latency of memory; each has several packets of a large parameter.
constexpr std::int64_t kAdamWBlocksPerMultiprocessor = 8;
/// Limited by registers: without a number the compiler fits six on GPUs of 8.0, and spills some.
constexpr int kAdamWBlocksAtOnce = 5;

/// Parameters of a kernel are at most 4 KiB.
struct AdamWBatch {
  static constexpr std::size_t kMaxTasks = 48;
  AdamWTask tasks[kMaxTasks];
};

__global__ void beginAdamW(const __grid_constant__ AdamWBeginning beginning) {
  const std::int64_t update = *beginning.numUpdates + 1;
  *beginning.numUpdates = update;
  const double squares = beginning.squares ? static_cast<double>(beginning.squares[0]) + beginning.squares[1] : 0.0;
  *beginning.corrections =
      adamWCorrections<float>(beginning.options, update, squares, [](double x) { return std::sqrt(x); });
}

__device__ void updatePacket(const AdamWTask& task, std::int64_t first, const AdamWTerms<float>& terms,
                             const AdamWCorrections<float>& corrections) {
  const std::int64_t left = task.elements - first;
  const int count = left < kAdamWVector ? static_cast<int>(left) : kAdamWVector;
  float w[kAdamWVector];
  float m[kAdamWVector];
  float v[kAdamWVector];
  float g[kAdamWVector];
  loadElements<Element::F32, kAdamWVector>(task.weights, first, count, w);
  loadElements<Element::F32, kAdamWVector>(task.expAvg, first, count, m);
  loadElements<Element::F32, kAdamWVector>(task.expAvgSq, first, count, v);
  loadElements<kAdamWVector>(task.gradientElement, task.gradients, first, count, g);
#pragma unroll
  for (int i = 0; i < kAdamWVector; ++i)
    updateByAdamW(terms, corrections, g[i], w[i], m[i], v[i], [](float x) { return std::sqrt(x); });
  storeElements<Element::F32, kAdamWVector>(task.weights, first, count, w);
  storeElements<Element::F32, kAdamWVector>(task.expAvg, first, count, m);
  storeElements<Element::F32, kAdamWVector>(task.expAvgSq, first, count, v);
  if (task.rounded) storeElements<kAdamWVector>(task.element, task.rounded, first, count, w);
  if (!task.clears) return;
  fill(0.0f, g);
  storeElements<kAdamWVector>(task.gradientElement, task.gradients, first, count, g);
}

/// gridDim: (blocks, 1, tasks)
__global__ void __launch_bounds__(kBlockThreads, kAdamWBlocksAtOnce)
    updateParameters(const __grid_constant__ AdamWBatch batch, const __grid_constant__ AdamWTerms<float> terms,
                     const AdamWCorrections<float>* corrections) {
  const AdamWTask& task = batch.tasks[blockIdx.z];
  const AdamWCorrections<float> ofUpdate = *corrections;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads * kAdamWVector;
  for (std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x) * kAdamWVector;
       first < task.elements; first += stride)
    updatePacket(task, first, terms, ofUpdate);
}

struct SquaresBatch {
  static constexpr std::size_t kMaxTasks = 128;
  SquaresTask tasks[kMaxTasks];
};

constexpr int kWarpsPerBlock = kBlockThreads / kWarpLanes;

/// blockDim: (kWarpLanes, kWarpsPerBlock)
__device__ float sumOverBlock(float value) {
  __shared__ float sums[kWarpsPerBlock];
  value = sumOverLanes(value, kWarpLanes);
  if (threadIdx.x == 0) sums[threadIdx.y] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < kWarpsPerBlock; ++warp) sum += sums[warp];
  return sum;
}

__device__ std::int64_t threadOfBlock() { return static_cast<std::int64_t>(threadIdx.y) * kWarpLanes + threadIdx.x; }

/// gridDim: (kSquaresPerTask, 1, tasks)
__global__ void __launch_bounds__(kBlockThreads) addSquares(const __grid_constant__ SquaresBatch batch, float* sums) {
  const SquaresTask& task = batch.tasks[blockIdx.z];
  constexpr std::int64_t kStride = static_cast<std::int64_t>(kSquaresPerTask) * kBlockThreads * kAdamWVector;
  float own = 0.0f;
  for (std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadOfBlock()) * kAdamWVector;
       first < task.elements; first += kStride) {
    const std::int64_t left = task.elements - first;
    const int count = left < kAdamWVector ? static_cast<int>(left) : kAdamWVector;
    float g[kAdamWVector];
    fill(0.0f, g);
    loadElements<kAdamWVector>(task.element, task.gradients, first, count, g);
#pragma unroll
    for (int i = 0; i < kAdamWVector; ++i) own += i < count ? g[i] * g[i] : 0.0f;
  }
  own = sumOverBlock(own);
  if (threadOfBlock() == 0) sums[static_cast<std::int64_t>(blockIdx.z) * kSquaresPerTask + blockIdx.x] = own;
}

/// gridDim: (2), one for each sum.
__global__ void __launch_bounds__(kBlockThreads)
    addSums(const float* sums, std::int64_t middle, std::int64_t count, float* squares) {
  const std::int64_t end = blockIdx.x == 0 ? middle : count;
  float own = 0.0f;
  for (std::int64_t i = (blockIdx.x == 0 ? 0 : middle) + threadOfBlock(); i < end; i += kBlockThreads) own += sums[i];
  own = sumOverBlock(own);
  if (threadOfBlock() == 0) squares[blockIdx.x] = own;
}

unsigned blocksFor(std::span<const AdamWTask> tasks, int numMultiprocessors) {
  constexpr std::int64_t kPerBlock = kBlockThreads * kAdamWVector;
  const std::int64_t elements = std::ranges::max(tasks, {}, &AdamWTask::elements).elements;
  const std::int64_t most = numMultiprocessors * kAdamWBlocksPerMultiprocessor;
  return static_cast<unsigned>(std::clamp<std::int64_t>((elements + kPerBlock - 1) / kPerBlock, 1, most));
}

}  // namespace

void launchAdamWBeginning(const AdamWBeginning& beginning, Stream stream) {
  launch(beginAdamW, dim3(1), dim3(1), 0, stream, beginning);
}

void launchAdamW(std::span<const AdamWTask> tasks, const AdamWTerms<float>& terms,
                 const AdamWCorrections<float>* corrections, int numMultiprocessors, Stream stream) {
  for (; !tasks.empty(); tasks = tasks.subspan(std::min(tasks.size(), AdamWBatch::kMaxTasks))) {
    const std::span<const AdamWTask> next = tasks.first(std::min(tasks.size(), AdamWBatch::kMaxTasks));
    AdamWBatch batch;
    std::ranges::copy(next, batch.tasks);
    const dim3 grid(blocksFor(next, numMultiprocessors), 1, static_cast<unsigned>(next.size()));
    launch(updateParameters, grid, dim3(kBlockThreads), 0, stream, batch, terms, corrections);
  }
}

void launchSquares(std::span<const SquaresTask> tasks, float* sums, Stream stream) {
  for (; !tasks.empty(); tasks = tasks.subspan(std::min(tasks.size(), SquaresBatch::kMaxTasks))) {
    const std::span<const SquaresTask> next = tasks.first(std::min(tasks.size(), SquaresBatch::kMaxTasks));
    SquaresBatch batch;
    std::ranges::copy(next, batch.tasks);
    const dim3 grid(kSquaresPerTask, 1, static_cast<unsigned>(next.size()));
    launch(addSquares, grid, dim3(kWarpLanes, kWarpsPerBlock), 0, stream, batch, sums);
    sums += next.size() * kSquaresPerTask;
  }
}

void launchSumOfSquares(const float* sums, std::int64_t middle, std::int64_t count, float* squares, Stream stream) {
  launch(addSums, dim3(2), dim3(kWarpLanes, kWarpsPerBlock), 0, stream, sums, middle, count, squares);
}

}  // namespace fuseline::cuda
