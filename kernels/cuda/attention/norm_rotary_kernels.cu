// RMSNorm of each head with a rotary embedding: h = x rstd gamma, y1 = h1 cos a - h2 sin a, y2 = h2 cos a + h1 sin a
// for the pairs of channels that turn, y = h for the rest; and the gradients.
// SPDX-License-Identifier: Apache-2.0
//
// A block has a token at a time: its threads find sines and cosines once, in shared memory; a warp has a head. Heads
// are read twice, the second time from the cache. Gamma's gradient is summed by warp, then by block, then over all
// blocks, in an order that does not change.
#include "kernels/cuda/attention/norm_rotary_launch.h"

#include "kernels/cuda/stream/launch.h"

#include <algorithm>
#include <type_traits>

#include <cuda_runtime.h>

#include "kernels/cuda/device/elementwise.h"
#include "kernels/cuda/device/rotary.h"
#include "kernels/cuda/device/rotary_codes.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr int kHeadWarps = 4;
constexpr int kHeadThreads = kHeadWarps * kWarpLanes;
constexpr int kForwardBlocks = 6;  // at once on a multiprocessor: without it the compiler spills registers

/// Sines and cosines of the block's token.
struct Angles {
  const float* cosines;
  const float* sines;
};

/// Fills the angles of a token; all threads of the block take part.
__device__ void findAngles(const NormRotaryTask& task, std::int64_t entry, std::int64_t token, float* cosines,
                           float* sines) {
  const std::int64_t position = positionOf(task, entry, token);
  const int pairs = static_cast<int>(task.numPairs);
  for (int pair = static_cast<int>(threadIdx.y) * kWarpLanes + static_cast<int>(threadIdx.x); pair < pairs;
       pair += kHeadThreads) {
    const bool isTurned = position >= 0;
    const Rotation rotation =
        isTurned ? rotationOf(static_cast<std::uint64_t>(position) * task.turns[pair]) : Rotation();
    cosines[pair] = isTurned ? task.cosineFactor * rotation.cosine : 1.0f;
    sines[pair] = task.sineFactor * rotation.sine;
  }
}

/// One head; a warp works on it.
template <Element kElement>
class HeadOfToken {
 public:
  /// row: of the token.
  __device__ HeadOfToken(const NormRotaryTask& task, const Angles& angles, std::int64_t row, std::int64_t head)
      : m_task(task),
        m_angles(angles),
        m_first((row * task.heads + head) * task.channels),
        m_firstOfX(row * task.rowStrideOfX + head * task.channels),
        m_firstOfDx(row * task.rowStrideOfDx + head * task.channels) {}

  __device__ float gamma(std::int64_t d) const {
    return loadElement(kElement, m_task.gamma, d) + (m_task.isGammaZeroCentred ? 1.0f : 0.0f);
  }
  __device__ float x(std::int64_t d) const { return loadElement(kElement, m_task.x, m_firstOfX + d); }
  __device__ float dy(std::int64_t d) const { return loadElement(kElement, m_task.y, m_first + d); }
  __device__ void putDx(std::int64_t d, float value) const {
    storeElement(kElement, m_task.dx, m_firstOfDx + d, value);
  }

  __device__ float sumOfSquares() const {
    float sum = 0.0f;
    for (std::int64_t d = threadIdx.x; d < m_task.channels; d += kWarpLanes) sum += x(d) * x(d);
    return sumOverLanes(sum, kWarpLanes);
  }

  /// turned(first channel, second channel, cosine, sine) for each pair of the lane; rest(channel) for the others.
  template <class Turned, class Rest>
  __device__ void forEach(const Turned& turned, const Rest& rest) const {
    for (std::int64_t pair = threadIdx.x; pair < m_task.numPairs; pair += kWarpLanes) {
      const std::int64_t one = m_task.isInterleaved ? 2 * pair : pair;
      const std::int64_t other = m_task.isInterleaved ? one + 1 : one + m_task.numPairs;
      turned(one, other, m_angles.cosines[pair], m_angles.sines[pair]);
    }
    for (std::int64_t d = 2 * m_task.numPairs + threadIdx.x; d < m_task.channels; d += kWarpLanes) rest(d);
  }

  using Codes = RotaryCodeWriter<kElement, 1, RotaryCodes>;

  __device__ void forward(float rstd, Codes& codes) const {
    const auto normalized = [&](std::int64_t d) { return x(d) * rstd * gamma(d); };
    const auto putY = [&](std::int64_t d, float value) {
      const float values[1] = {value};
      if (isWanted(m_task.codes)) codes.put(m_first + d, values);
      if (m_task.y) storeElement(kElement, m_task.y, m_first + d, value);
    };
    forEach(
        [&](std::int64_t one, std::int64_t other, float cosine, float sine) {
          const float h1 = normalized(one);
          const float h2 = normalized(other);
          putY(one, cosine * h1 - sine * h2);
          putY(other, cosine * h2 + sine * h1);
        },
        [&](std::int64_t d) { putY(d, normalized(d)); });
  }

  /// f(channel, gradient of the normalized head) for each channel of the lane.
  template <class Function>
  __device__ void forEachGradient(const Function& f) const {
    forEach(
        [&](std::int64_t one, std::int64_t other, float cosine, float sine) {
          const float dy1 = dy(one);
          const float dy2 = dy(other);
          f(one, cosine * dy1 - sine * dy2);
          f(other, cosine * dy2 + sine * dy1);
        },
        [&](std::int64_t d) { f(d, dy(d)); });
  }

  /// gammaSums: of the warp. [channels]
  __device__ void backward(float rstd, float* gammaSums) const {
    float dot = 0.0f;
    forEachGradient([&](std::int64_t d, float dh) { dot += gamma(d) * dh * x(d) * rstd; });
    const float mean = sumOverLanes(dot, kWarpLanes) / static_cast<float>(m_task.channels);
    forEachGradient([&](std::int64_t d, float dh) {
      const float xh = x(d) * rstd;
      if (m_task.dx) putDx(d, rstd * (gamma(d) * dh - mean * xh));
      gammaSums[d] += dh * xh;
    });
  }

 private:
  const NormRotaryTask& m_task;
  const Angles& m_angles;
  std::int64_t m_first;
  std::int64_t m_firstOfX;
  std::int64_t m_firstOfDx;
};

__device__ std::int64_t rowOf(const NormRotaryTask& task, std::int64_t entry, std::int64_t token) {
  return entry * task.batchRows + token * task.tokenRows;
}

template <Element kElement>
__global__ void __launch_bounds__(kHeadThreads, kForwardBlocks)
    normAndRotate(const __grid_constant__ NormRotaryTask task) {
  __shared__ float cosines[NormRotaryTask::kMaxPairs];
  __shared__ float sines[NormRotaryTask::kMaxPairs];
  const bool isFirst = blockIdx.x == 0 && threadIdx.x == 0 && threadIdx.y == 0;
  if (isFirst && task.codes.codes) *task.codes.inverse = 1.0f / *task.codes.scale;
  if (task.batch * task.tokens == 0) return;
  const std::int64_t entry = blockIdx.x / task.tokens;
  const std::int64_t token = blockIdx.x % task.tokens;
  findAngles(task, entry, token, cosines, sines);
  __syncthreads();
  const Angles angles{cosines, sines};
  const std::int64_t row = rowOf(task, entry, token);
  typename HeadOfToken<kElement>::Codes codes(task.codes);
  for (std::int64_t head = threadIdx.y; head < task.heads; head += kHeadWarps) {
    const HeadOfToken<kElement> own(task, angles, row, head);
    const float rstd = 1.0f / sqrtf(own.sumOfSquares() / static_cast<float>(task.channels) + task.eps);
    if (task.rstd && threadIdx.x == 0) task.rstd[row * task.heads + head] = rstd;
    own.forward(rstd, codes);
  }
  codes.finish();
}

template <Element kElement>
__global__ void __launch_bounds__(kHeadThreads)
    rotateBackAndDifferentiate(const __grid_constant__ NormRotaryTask task) {
  __shared__ float cosines[NormRotaryTask::kMaxPairs];
  __shared__ float sines[NormRotaryTask::kMaxPairs];
  __shared__ float sums[kHeadWarps][NormRotaryTask::kMaxChannels];
  for (std::int64_t d = threadIdx.x; d < task.channels; d += kWarpLanes) sums[threadIdx.y][d] = 0.0f;
  for (std::int64_t i = blockIdx.x; i < task.batch * task.tokens; i += gridDim.x) {
    __syncthreads();  // the token before is done
    findAngles(task, i / task.tokens, i % task.tokens, cosines, sines);
    __syncthreads();
    const Angles angles{cosines, sines};
    const std::int64_t row = rowOf(task, i / task.tokens, i % task.tokens);
    for (std::int64_t head = threadIdx.y; head < task.heads; head += kHeadWarps)
      HeadOfToken<kElement>(task, angles, row, head).backward(task.rstd[row * task.heads + head], sums[threadIdx.y]);
  }
  __syncthreads();
  if (!task.gammaSums || threadIdx.y > 0) return;
  for (std::int64_t d = threadIdx.x; d < task.channels; d += kWarpLanes) {
    float sum = 0.0f;
    for (int warp = 0; warp < kHeadWarps; ++warp) sum += sums[warp][d];
    task.gammaSums[blockIdx.x * task.channels + d] = sum;
  }
}

template <Element kElement>
__global__ void __launch_bounds__(kHeadThreads)
    sumGamma(const __grid_constant__ NormRotaryTask task, int blocks, void* gradient) {
  for (std::int64_t d = threadIdx.x; d < task.channels; d += kHeadThreads) {
    float sum = 0.0f;
    for (int block = 0; block < blocks; ++block) sum += task.gammaSums[block * task.channels + d];
    storeElement(kElement, gradient, d, sum);
  }
}

/// launch(integral constant) for the element type.
template <class Launch>
void withElementOf(const NormRotaryTask& task, const Launch& launch) {
  switch (task.element) {
    case Element::F32: return launch(std::integral_constant<Element, Element::F32>());
    case Element::F16: return launch(std::integral_constant<Element, Element::F16>());
    case Element::BF16: return launch(std::integral_constant<Element, Element::BF16>());
  }
}

}  // namespace

void launchNormRotaryForward(const NormRotaryTask& task, Stream stream) {
  const std::int64_t tokens = task.batch * task.tokens;
  if (tokens == 0 && !task.codes.codes) return;
  withElementOf(task, [&](auto element) {
    launch(normAndRotate<element()>, dim3(static_cast<unsigned>(std::max<std::int64_t>(tokens, 1))),
           dim3(kWarpLanes, kHeadWarps), 0, stream, task);
  });
}

void launchNormRotaryBackward(const NormRotaryTask& task, int blocks, Stream stream) {
  withElementOf(task, [&](auto element) {
    launch(rotateBackAndDifferentiate<element()>, dim3(static_cast<unsigned>(blocks)), dim3(kWarpLanes, kHeadWarps), 0,
           stream, task);
  });
}

void launchGammaGradient(const NormRotaryTask& task, int blocks, void* gradient, Stream stream) {
  withElementOf(task, [&](auto element) {
    launch(sumGamma<element()>, dim3(1), dim3(kHeadThreads), 0, stream, task, blocks, gradient);
  });
}

}  // namespace fuseline::cuda
