// Rotary position embedding: y1 = x1 cos a - x2 sin a, y2 = x2 cos a + x1 sin a for every pair of channels of a head.
//
// A block has a token: its threads find sines and cosines once, in shared memory, and then turn the pairs of all heads.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/rotary_launch.h"

#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/device/rotary.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// The heads of one token, which is asked of by all threads of a block.
template <Element kElement, int kVector>
class TokenRotation {
 public:
  /// from, to: elements of the token.
  __device__ TokenRotation(const RotaryTask& task, const float* cosines, const float* sines, std::int64_t from,
                           std::int64_t to, bool isTurned)
      : m_task(task), m_cosines(cosines), m_sines(sines), m_from(from), m_to(to), m_isTurned(isTurned) {}

  __device__ void run() const {
    const std::int64_t rest = m_task.passesRest ? m_task.channels - 2 * m_task.numPairs : 0;
    const std::int64_t turned =
        m_task.isInterleaved && kVector > 1 ? 2 * m_task.pairs / kVector : m_task.pairs / kVector;
    const std::int64_t perHead = turned + rest / kVector;
    for (std::int64_t i = threadIdx.x; i < m_task.heads * perHead; i += blockDim.x) {
      const std::int64_t head = i / perHead;
      const std::int64_t packet = i % perHead;
      const Places places = {m_from + head * m_task.fromHeadStride, m_to + head * m_task.toHeadStride};
      if (packet < turned)
        turn(places, static_cast<int>(packet));
      else
        pass(places, 2 * m_task.numPairs + (packet - turned) * kVector);
    }
  }

 private:
  /// The first element of a head in either tensor.
  struct Places {
    std::int64_t from;
    std::int64_t to;
  };

  __device__ void load(const Places& places, std::int64_t channel, float (&values)[kVector]) const {
    loadElements<kElement, kVector>(m_task.from, places.from + channel, kVector, values);
  }
  __device__ void store(const Places& places, std::int64_t channel, const float (&values)[kVector]) const {
    storeElements<kElement, kVector>(m_task.to, places.to + channel, kVector, values);
  }

  __device__ void pass(const Places& places, std::int64_t channel) const {
    float values[kVector];
    load(places, channel, values);
    store(places, channel, values);
  }

  __device__ void turn(const Places& places, int packet) const {
    if constexpr (kVector > 1)
      if (m_task.isInterleaved) return turnNeighbors(places, packet);
    const std::int64_t pair = m_task.firstPair + packet * kVector;
    const std::int64_t first = m_task.isInterleaved ? 2 * pair : pair;
    const std::int64_t second = m_task.isInterleaved ? first + 1 : first + m_task.numPairs;
    float x1[kVector];
    float x2[kVector];
    load(places, first, x1);
    load(places, second, x2);
#pragma unroll
    for (int v = 0; v < kVector; ++v) turnPair(packet * kVector + v, x1[v], x2[v]);
    store(places, first, x1);
    store(places, second, x2);
  }

  /// Half as many pairs as a packet has elements.
  __device__ void turnNeighbors(const Places& places, int packet) const {
    const std::int64_t channel = 2 * m_task.firstPair + packet * kVector;
    float x[kVector];
    load(places, channel, x);
#pragma unroll
    for (int v = 0; v + 1 < kVector; v += 2) turnPair((packet * kVector + v) / 2, x[v], x[v + 1]);
    store(places, channel, x);
  }

  __device__ void turnPair(int pair, float& x1, float& x2) const {
    if (!m_isTurned) return;
    const float cosine = m_cosines[pair];
    const float sine = m_sines[pair];
    const float y1 = cosine * x1 - sine * x2;
    x2 = cosine * x2 + sine * x1;
    x1 = y1;
  }

  const RotaryTask& m_task;
  const float* m_cosines;
  const float* m_sines;
  std::int64_t m_from;
  std::int64_t m_to;
  bool m_isTurned;
};

template <Element kElement, int kVector>
__global__ void __launch_bounds__(kBlockThreads) rotate(const __grid_constant__ RotaryTask task) {
  __shared__ float cosines[RotaryTask::kMaxPairs];
  __shared__ float sines[RotaryTask::kMaxPairs];
  const std::int64_t entry = blockIdx.x / task.tokens;
  const std::int64_t token = blockIdx.x % task.tokens;
  const std::int64_t position = positionOf(task, entry, token);
  for (int pair = static_cast<int>(threadIdx.x); pair < task.pairs; pair += static_cast<int>(blockDim.x)) {
    const Rotation rotation = rotationOf(static_cast<std::uint64_t>(position) * task.turns[pair]);
    cosines[pair] = task.cosineFactor * rotation.cosine;
    sines[pair] = task.sineFactor * rotation.sine;
  }
  __syncthreads();
  const std::int64_t from = entry * task.fromBatchStride + token * task.fromTokenStride;
  const std::int64_t to = entry * task.toBatchStride + token * task.toTokenStride;
  TokenRotation<kElement, kVector>(task, cosines, sines, from, to, position >= 0).run();
}

template <int kVector>
auto kernelFor(Element element) {
  switch (element) {
    case Element::F16: return rotate<Element::F16, kVector>;
    case Element::BF16: return rotate<Element::BF16, kVector>;
    case Element::F32: break;
  }
  return rotate<Element::F32, kVector>;
}

/// Whole warps, of which none has nothing to do.
unsigned threadsFor(const RotaryTask& task) {
  const std::int64_t work = task.heads * task.channels / (task.isVectorized ? 2 * kVectorWidth : 2);
  const std::int64_t warps =
      std::clamp<std::int64_t>((work + kWarpLanes - 1) / kWarpLanes, 1, kBlockThreads / kWarpLanes);
  return static_cast<unsigned>(warps * kWarpLanes);
}

}  // namespace

void launchRotary(const RotaryTask& task, Stream stream) {
  const std::int64_t blocks = task.batch * task.tokens;
  if (blocks == 0) return;
  const auto kernel = task.isVectorized ? kernelFor<kVectorWidth>(task.element) : kernelFor<1>(task.element);
  launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(threadsFor(task)), 0, stream, task);
}

}  // namespace fuseline::cuda
