// CrossEntropy, a block a row: forward reads the logits once and keeps the largest and the sum of exponentials on the
// way; backward reads them again. Sums are float32, in the same order in every run.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/cross_entropy_launch.h"

#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/device/elementwise.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// exp(x - max) summed, with the max so far.
struct OnlineSum {
  float max = -INFINITY;
  float expSum = 0.0f;
  float sum = 0.0f;

  __device__ void add(float x) {
    sum += x;
    merge({x, 1.0f, 0.0f});
  }
  /// A NaN stays in the sum; nothing is added while both are -inf.
  __device__ void merge(const OnlineSum& other) {
    const float most = other.max > max ? other.max : max;
    expSum = scaled(most) + other.scaled(most);
    max = most;
    sum += other.sum;
  }

 private:
  __device__ float scaled(float most) const {
    if (max == most && max == -INFINITY) return expSum == 0.0f ? 0.0f : NAN;
    return expSum * expf(max - most);
  }
};

__device__ bool counts(const CrossEntropyTask& task, std::int64_t target) {
  return target != task.ignoreIndex && target >= 0 && target < task.classes;
}

/// A packet of memory, of which the classes from `skipped` to `count` are the row's.
struct ClassPacket {
  std::int64_t row, first;
  int count, skipped;

  __device__ bool has(int v) const { return v >= skipped && v < count; }
  __device__ void load(const CrossEntropyTask& task, float (&x)[kVectorWidth]) const {
    loadElements<kVectorWidth>(task.element, task.x, row * task.classes + first, count, x, skipped);
  }
  __device__ void storeGradient(const CrossEntropyTask& task, const float (&dx)[kVectorWidth]) const {
    storeElements<kVectorWidth>(task.element, task.dx, row * task.classes + first, count, dx, skipped);
  }
};

/// f(packet) for the packets of the running thread. Rows begin and end in the middle of one if they are not whole
/// packets.
template <class Function>
__device__ void forPackets(const CrossEntropyTask& task, std::int64_t row, const Function& f) {
  constexpr std::int64_t kStep = static_cast<std::int64_t>(kBlockThreads) * kVectorWidth;
  const std::int64_t shift = row * task.classes % kVectorWidth;
  for (std::int64_t first = static_cast<std::int64_t>(threadIdx.x) * kVectorWidth - shift; first < task.classes;
       first += kStep) {
    const std::int64_t left = task.classes - first;
    f(ClassPacket{row, first, left < kVectorWidth ? static_cast<int>(left) : kVectorWidth,
                  first < 0 ? static_cast<int>(-first) : 0});
  }
}

/// Over all threads of the block, in a fixed tree; the result is in the first thread.
__device__ OnlineSum mergedOverBlock(const OnlineSum& own) {
  __shared__ OnlineSum all[kBlockThreads];
  const int thread = static_cast<int>(threadIdx.x);
  all[thread] = own;
  __syncthreads();
  for (int half = kBlockThreads / 2; half > 0; half /= 2) {
    if (thread < half) all[thread].merge(all[thread + half]);
    __syncthreads();
  }
  return all[0];
}

__global__ void __launch_bounds__(kBlockThreads) rowLosses(const __grid_constant__ CrossEntropyTask task) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t target = task.target[row];
  if (!counts(task, target)) {
    if (threadIdx.x == 0 && task.lse) task.lse[row] = 0.0f;
    if (threadIdx.x == 0) task.losses[row] = 0.0f;
    return;
  }
  OnlineSum own;
  forPackets(task, row, [&](const ClassPacket& packet) {
    float x[kVectorWidth];
    packet.load(task, x);
#pragma unroll
    for (int v = 0; v < kVectorWidth; ++v)
      if (packet.has(v)) own.add(x[v]);
  });
  const OnlineSum sums = mergedOverBlock(own);
  if (threadIdx.x != 0) return;
  const float lse = sums.max + logf(sums.expSum);
  if (task.lse) task.lse[row] = lse;
  const float atTarget = loadElement(task.element, task.x, row * task.classes + target);
  float loss = (1.0f - task.smoothing) * (lse - atTarget) + task.lseSquareScale * lse * lse;
  if (task.smoothing > 0.0f) loss += task.smoothing * (lse - sums.sum / static_cast<float>(task.classes));
  task.losses[row] = loss;
}

/// One block, for all rows.
__global__ void __launch_bounds__(kBlockThreads) addLosses(const __grid_constant__ CrossEntropyTask task) {
  __shared__ float sums[kBlockThreads];
  const int thread = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (std::int64_t row = thread; row < task.rows; row += kBlockThreads) sum += task.losses[row];
  sums[thread] = sum;
  __syncthreads();
  for (int half = kBlockThreads / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread == 0) *task.loss = sums[0] * task.scale;
}

__global__ void __launch_bounds__(kBlockThreads) logitGradients(const __grid_constant__ CrossEntropyTask task) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t target = task.target[row];
  const bool isCounted = counts(task, target);
  const float dy = isCounted ? task.dy[task.isDyByRow ? row : 0] * task.scale : 0.0f;
  const float lse = isCounted ? task.lse[row] : 0.0f;
  const float factor = dy * (1.0f + 2.0f * task.lseSquareScale * lse);
  const float shift = dy * task.smoothing / static_cast<float>(task.classes);
  const float atTarget = dy * (1.0f - task.smoothing);
  forPackets(task, row, [&](const ClassPacket& packet) {
    float x[kVectorWidth] = {};
    if (isCounted) {
      packet.load(task, x);
#pragma unroll
      for (int v = 0; v < kVectorWidth; ++v)
        x[v] = factor * expf(x[v] - lse) - shift - (packet.first + v == target ? atTarget : 0.0f);
    }
    packet.storeGradient(task, x);
  });
}

/// sums null: zeros.
__global__ void __launch_bounds__(kBlockThreads)
    roundSums(const float* sums, void* to, Element element, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads * kVectorWidth;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x) * kVectorWidth;
  for (std::int64_t i = first; i < count; i += step) {
    const std::int64_t rest = count - i;
    const int inside = static_cast<int>(rest < kVectorWidth ? rest : kVectorWidth);
    float values[kVectorWidth] = {};
    if (sums) loadElements<Element::F32, kVectorWidth>(sums, i, inside, values);
    storeElements<kVectorWidth>(element, to, i, inside, values);
  }
}

}  // namespace

void launchRowLosses(const CrossEntropyTask& task, Stream stream) {
  if (task.rows > 0) launch(rowLosses, dim3(static_cast<unsigned>(task.rows)), dim3(kBlockThreads), 0, stream, task);
}

void launchLossSum(const CrossEntropyTask& task, Stream stream) {
  launch(addLosses, dim3(1), dim3(kBlockThreads), 0, stream, task);
}

void launchRounding(const float* sums, void* to, device::Element element, std::int64_t count, Stream stream) {
  constexpr std::int64_t kMaxBlocks = 4096;
  constexpr std::int64_t kEach = static_cast<std::int64_t>(kBlockThreads) * kVectorWidth;
  if (count == 0) return;
  launch(roundSums, dim3(static_cast<unsigned>(std::min((count + kEach - 1) / kEach, kMaxBlocks))), dim3(kBlockThreads),
         0, stream, sums, to, element, count);
}

void launchZeros(float* sums, std::int64_t count, Stream stream) {
  launchRounding(nullptr, sums, device::Element::F32, count, stream);
}

void launchCrossEntropyGradient(const CrossEntropyTask& task, Stream stream) {
  if (task.rows > 0)
    launch(logitGradients, dim3(static_cast<unsigned>(task.rows)), dim3(kBlockThreads), 0, stream, task);
}

}  // namespace fuseline::cuda
