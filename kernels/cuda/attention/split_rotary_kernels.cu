// A Split with rotary embeddings of its parts: y1 = x1 cos a - x2 sin a, y2 = x2 cos a + x1 sin a for the pairs of
// channels of each head of a part, copies for the rest, in either direction.
//
// A block has a row of the packed tensor. For each part its threads find sines and cosines once, in shared memory.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/split_rotary_launch.h"

#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/device/amax.h"
#include "kernels/cuda/device/code_tile.h"
#include "kernels/cuda/device/rotary.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// -1: in no sequence.
__device__ std::int64_t positionOfRow(const RotaryColumns& part, std::int64_t row) {
  if (part.isTokenFirst) return positionOf(part, row % part.batch, row / part.batch);
  return positionOf(part, row / part.tokens, row % part.tokens);
}

__device__ bool isWanted(const RotaryCodes& codes) { return codes.codes || codes.amax; }

/// Quantizes the results that a thread stores, and finds their amax.
template <Element kElement, int kVector>
class RowPartCodes {
 public:
  __device__ RowPartCodes(const RotaryCodes& task, std::int64_t firstElement) : m_task(task), m_first(firstElement) {}

  __device__ void put(std::int64_t column, const float (&values)[kVector]) {
    float stored[kVector];
#pragma unroll
    for (int v = 0; v < kVector; ++v) stored[v] = values[v];
    roundTo(kElement, stored);
#pragma unroll
    for (int v = 0; v < kVector; ++v) m_largest = largerOf(fabsf(stored[v]), m_largest);
    if (!m_task.codes) return;
    std::uint8_t* const to = m_task.codes + m_first + column;
    FUSELINE_WRITES(to, kVector);
    if constexpr (kVector == kPatch) {
      float multipliers[kPatch];
      fill(*m_task.scale, multipliers);
      *reinterpret_cast<CodePacket*>(to) = encodePacket(stored, multipliers, m_task.code);
    } else {
      *to = encode(stored[0] * *m_task.scale, m_task.code);
    }
  }

  /// All threads of a warp call it.
  __device__ void finish() const {
    if (!m_task.amax) return;
    float largest = m_largest;
    for (int offset = kWarpLanes / 2; offset > 0; offset /= 2)
      largest = largerOf(__shfl_xor_sync(0xffffffffu, largest, offset), largest);
    raiseTo(m_task.amax, largest, static_cast<int>(threadIdx.x) % kWarpLanes);
  }

 private:
  const RotaryCodes& m_task;
  std::int64_t m_first;
  float m_largest = 0.0f;
};

/// One part of one row.
template <Element kElement, int kVector>
class PartOfRow {
 public:
  __device__ PartOfRow(const SplitRotaryTask& task, const RotaryColumns& part, std::int64_t row, const float* cosines,
                       const float* sines)
      : m_task(task),
        m_part(part),
        m_inPacked(row * task.width + part.first),
        m_inPart(row * part.rowStride),
        m_cosines(cosines),
        m_sines(sines),
        m_codes(part.codes, row * part.width) {}

  __device__ void run() {
    const std::int64_t turned = (m_part.isInterleaved && kVector > 1 ? 2 : 1) * m_part.numPairs / kVector;
    const std::int64_t perHead = turned + (m_part.channels - 2 * m_part.numPairs) / kVector;
    const std::int64_t packets = m_part.width / m_part.channels * perHead;
    for (std::int64_t i = threadIdx.x; i < packets; i += blockDim.x) {
      const std::int64_t head = i / perHead * m_part.channels;
      const std::int64_t packet = i % perHead;
      if (packet < turned)
        turn(head, packet);
      else
        copy(head + 2 * m_part.numPairs + (packet - turned) * kVector);
    }
    m_codes.finish();
  }

 private:
  __device__ void load(std::int64_t column, float (&values)[kVector]) const {
    const void* const from = m_task.isBackward ? m_part.data : m_task.packed;
    fill(0.0f, values);
    if (from)
      loadElements<kElement, kVector>(from, (m_task.isBackward ? m_inPart : m_inPacked) + column, kVector, values);
    if (!m_task.bias) return;
    float bias[kVector];
    loadElements<kElement, kVector>(m_task.bias, m_part.first + column, kVector, bias);
#pragma unroll
    for (int v = 0; v < kVector; ++v) values[v] += bias[v];
  }

  __device__ void store(std::int64_t column, const float (&values)[kVector]) {
    if (isWanted(m_part.codes)) m_codes.put(column, values);
    void* const to = m_task.isBackward ? m_task.packed : m_part.data;
    if (to) storeElements<kElement, kVector>(to, (m_task.isBackward ? m_inPacked : m_inPart) + column, kVector, values);
  }

  __device__ void copy(std::int64_t column) {
    float values[kVector];
    load(column, values);
    store(column, values);
  }

  __device__ void turn(std::int64_t head, std::int64_t packet) {
    if constexpr (kVector > 1)
      if (m_part.isInterleaved) return turnNeighbors(head, packet);
    const std::int64_t pair = packet * kVector;
    const std::int64_t first = head + (m_part.isInterleaved ? 2 * pair : pair);
    const std::int64_t second = m_part.isInterleaved ? first + 1 : first + m_part.numPairs;
    float x1[kVector];
    float x2[kVector];
    load(first, x1);
    load(second, x2);
#pragma unroll
    for (int v = 0; v < kVector; ++v) turnPair(pair + v, x1[v], x2[v]);
    store(first, x1);
    store(second, x2);
  }

  /// Half as many pairs as a packet has elements.
  __device__ void turnNeighbors(std::int64_t head, std::int64_t packet) {
    float x[kVector];
    load(head + packet * kVector, x);
#pragma unroll
    for (int v = 0; v + 1 < kVector; v += 2) turnPair((packet * kVector + v) / 2, x[v], x[v + 1]);
    store(head + packet * kVector, x);
  }

  __device__ void turnPair(std::int64_t pair, float& x1, float& x2) const {
    const float y1 = m_cosines[pair] * x1 - m_sines[pair] * x2;
    x2 = m_cosines[pair] * x2 + m_sines[pair] * x1;
    x1 = y1;
  }

  const SplitRotaryTask& m_task;
  const RotaryColumns& m_part;
  std::int64_t m_inPacked;
  std::int64_t m_inPart;
  const float* m_cosines;
  const float* m_sines;
  RowPartCodes<kElement, kVector> m_codes;
};

template <Element kElement, int kVector>
__global__ void __launch_bounds__(kBlockThreads) splitRotary(const __grid_constant__ SplitRotaryTask task) {
  __shared__ float cosines[SplitRotaryTask::kMaxTurns];
  __shared__ float sines[SplitRotaryTask::kMaxTurns];
  const std::int64_t row = blockIdx.x;
  for (int i = 0; i < task.numParts; ++i) {
    const RotaryColumns& part = task.parts[i];
    if (part.isInPlace || (!part.data && !isWanted(part.codes) && !task.isBackward)) continue;
    if (part.codes.codes && row == 0 && threadIdx.x == 0) *part.codes.inverse = 1.0f / *part.codes.scale;
    if (task.rows == 0) continue;
    const std::int64_t position = part.numPairs > 0 ? positionOfRow(part, row) : -1;
    const int pairs = static_cast<int>(part.numPairs);
    for (int pair = static_cast<int>(threadIdx.x); pair < pairs; pair += static_cast<int>(blockDim.x)) {
      const std::uint64_t turns = task.turns[part.firstTurn + pair];
      const bool isTurned = position >= 0;
      const Rotation rotation = isTurned ? rotationOf(static_cast<std::uint64_t>(position) * turns) : Rotation();
      cosines[part.firstTurn + pair] = isTurned ? part.cosineFactor * rotation.cosine : 1.0f;
      sines[part.firstTurn + pair] = part.sineFactor * rotation.sine;
    }
    __syncthreads();
    PartOfRow<kElement, kVector>(task, part, row, cosines + part.firstTurn, sines + part.firstTurn).run();
  }
}

template <int kVector>
auto kernelFor(Element element) {
  switch (element) {
    case Element::F16: return splitRotary<Element::F16, kVector>;
    case Element::BF16: return splitRotary<Element::BF16, kVector>;
    case Element::F32: break;
  }
  return splitRotary<Element::F32, kVector>;
}

/// Whole warps, of which none has nothing to do.
unsigned threadsFor(const SplitRotaryTask& task) {
  const std::int64_t work = task.width / (task.isVectorized ? kVectorWidth : 1);
  const std::int64_t warps =
      std::clamp<std::int64_t>((work + kWarpLanes - 1) / kWarpLanes, 1, kBlockThreads / kWarpLanes);
  return static_cast<unsigned>(warps * kWarpLanes);
}

}  // namespace

void launchSplitRotary(const SplitRotaryTask& task, Stream stream) {
  const bool hasCodes =
      std::any_of(task.parts, task.parts + task.numParts, [](const RotaryColumns& part) { return part.codes.codes; });
  if ((task.rows == 0 && !hasCodes) || task.width == 0) return;
  const auto kernel = task.isVectorized ? kernelFor<kVectorWidth>(task.element) : kernelFor<1>(task.element);
  launch(kernel, dim3(static_cast<unsigned>(std::max<std::int64_t>(task.rows, 1))), dim3(threadsFor(task)), 0, stream,
         task);
}

}  // namespace fuseline::cuda
