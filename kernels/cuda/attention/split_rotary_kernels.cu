// A Split with rotary embeddings of its parts: y1 = x1 cos a - x2 sin a, y2 = x2 cos a + x1 sin a for the pairs of
// channels of each head of a part, copies for the rest, in either direction.
//
// A block has a row of the packed tensor. For each part its threads find sines and cosines once, in shared memory. With
// sums of columns a block has some columns of a part and a group of rows: a thread has the same columns in all of them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/split_rotary_launch.h"

#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/device/rotary.h"
#include "kernels/cuda/device/rotary_codes.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// -1: in no sequence.
__device__ std::int64_t positionOfRow(const RotaryColumns& part, std::int64_t row) {
  if (part.isTokenFirst) return positionOf(part, row % part.batch, row / part.batch);
  return positionOf(part, row / part.tokens, row % part.tokens);
}

/// Packets of a head, of two packets each if they turn with another one, and those of a part.
template <int kVector>
__host__ __device__ std::int64_t turnedPackets(const RotaryColumns& part) {
  return (part.isInterleaved && kVector > 1 ? 2 : 1) * part.numPairs / kVector;
}
template <int kVector>
__host__ __device__ std::int64_t packetsOfHead(const RotaryColumns& part) {
  return turnedPackets<kVector>(part) + (part.channels - 2 * part.numPairs) / kVector;
}
template <int kVector>
__host__ __device__ std::int64_t numPackets(const RotaryColumns& part) {
  return part.width / part.channels * packetsOfHead<kVector>(part);
}

/// One part of one row.
template <Element kElement, int kVector>
class PartOfRow {
 public:
  __device__ PartOfRow(const SplitRotaryTask& task, const RotaryColumns& part, std::int64_t row, const float* cosines,
                       const float* sines)
      : m_task(task),
        m_part(part),
        m_row(row),
        m_inPacked(row * task.width + part.first),
        m_inPart(row * part.rowStride),
        m_cosines(cosines),
        m_sines(sines),
        m_codes(part.codes) {}

  __device__ void run() {
    const std::int64_t packets = numPackets<kVector>(m_part);
    for (std::int64_t i = threadIdx.x; i < packets; i += blockDim.x)
      runPacket(i, [](int, std::int64_t, const auto&) {});
    m_codes.finish();
  }

  /// f(0 or 1, column, values) for the one or two packets of results that belong to packet i.
  template <class Function>
  __device__ void runPacket(std::int64_t i, const Function& f) {
    const std::int64_t turned = turnedPackets<kVector>(m_part);
    const std::int64_t perHead = packetsOfHead<kVector>(m_part);
    const std::int64_t head = i / perHead * m_part.channels;
    const std::int64_t packet = i % perHead;
    if (packet < turned)
      turn(head, packet, f);
    else
      copy(head + 2 * m_part.numPairs + (packet - turned) * kVector, f);
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

  template <class Function>
  __device__ void store(int which, std::int64_t column, const float (&values)[kVector], const Function& f) {
    f(which, column, values);
    if (isWanted(m_part.codes)) m_codes.put(m_row * m_part.width + column, values);
    void* const to = m_task.isBackward ? m_task.packed : m_part.data;
    if (to) storeElements<kElement, kVector>(to, (m_task.isBackward ? m_inPacked : m_inPart) + column, kVector, values);
  }

  template <class Function>
  __device__ void copy(std::int64_t column, const Function& f) {
    float values[kVector];
    load(column, values);
    store(0, column, values, f);
  }

  template <class Function>
  __device__ void turn(std::int64_t head, std::int64_t packet, const Function& f) {
    if constexpr (kVector > 1)
      if (m_part.isInterleaved) return turnNeighbors(head, packet, f);
    const std::int64_t pair = packet * kVector;
    const std::int64_t first = head + (m_part.isInterleaved ? 2 * pair : pair);
    const std::int64_t second = m_part.isInterleaved ? first + 1 : first + m_part.numPairs;
    float x1[kVector];
    float x2[kVector];
    load(first, x1);
    load(second, x2);
#pragma unroll
    for (int v = 0; v < kVector; ++v) turnPair(pair + v, x1[v], x2[v]);
    store(0, first, x1, f);
    store(1, second, x2, f);
  }

  /// Half as many pairs as a packet has elements.
  template <class Function>
  __device__ void turnNeighbors(std::int64_t head, std::int64_t packet, const Function& f) {
    float x[kVector];
    load(head + packet * kVector, x);
#pragma unroll
    for (int v = 0; v + 1 < kVector; v += 2) turnPair((packet * kVector + v) / 2, x[v], x[v + 1]);
    store(0, head + packet * kVector, x, f);
  }

  __device__ void turnPair(std::int64_t pair, float& x1, float& x2) const {
    const float y1 = m_cosines[pair] * x1 - m_sines[pair] * x2;
    x2 = m_cosines[pair] * x2 + m_sines[pair] * x1;
    x1 = y1;
  }

  const SplitRotaryTask& m_task;
  const RotaryColumns& m_part;
  std::int64_t m_row;
  std::int64_t m_inPacked;
  std::int64_t m_inPart;
  const float* m_cosines;
  const float* m_sines;
  RotaryCodeWriter<kElement, kVector, RotaryCodes> m_codes;
};

/// By pair of the part; all threads of the block take part.
__device__ void findAngles(const SplitRotaryTask& task, const RotaryColumns& part, std::int64_t row, float* cosines,
                           float* sines) {
  const std::int64_t position = part.numPairs > 0 ? positionOfRow(part, row) : -1;
  const int pairs = static_cast<int>(part.numPairs);
  for (int pair = static_cast<int>(threadIdx.x); pair < pairs; pair += static_cast<int>(blockDim.x)) {
    const std::uint64_t turns = task.turns[part.firstTurn + pair];
    const bool isTurned = position >= 0;
    const Rotation rotation = isTurned ? rotationOf(static_cast<std::uint64_t>(position) * turns) : Rotation();
    cosines[pair] = isTurned ? part.cosineFactor * rotation.cosine : 1.0f;
    sines[pair] = part.sineFactor * rotation.sine;
  }
}

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
    findAngles(task, part, row, cosines + part.firstTurn, sines + part.firstTurn);
    __syncthreads();
    PartOfRow<kElement, kVector>(task, part, row, cosines + part.firstTurn, sines + part.firstTurn).run();
  }
}

constexpr int kSumThreads = 128;

/// Blocks that have the columns of a part.
template <int kVector>
__host__ __device__ std::int64_t numSlices(const RotaryColumns& part) {
  return (numPackets<kVector>(part) + kSumThreads - 1) / kSumThreads;
}

/// blockIdx: group of rows; slice of columns among those of all parts.
template <Element kElement, int kVector>
__global__ void __launch_bounds__(kSumThreads)
    splitRotaryWithSums(const __grid_constant__ SplitRotaryTask task, const __grid_constant__ SplitRotarySums to) {
  __shared__ float cosines[SplitRotaryTask::kMaxTurns];
  __shared__ float sines[SplitRotaryTask::kMaxTurns];
  int index = 0;
  std::int64_t slice = blockIdx.y;
  while (slice >= numSlices<kVector>(task.parts[index])) slice -= numSlices<kVector>(task.parts[index++]);
  const RotaryColumns& part = task.parts[index];
  const std::int64_t packet = slice * kSumThreads + threadIdx.x;
  const bool hasPacket = packet < numPackets<kVector>(part);
  float sums[2][kVector] = {};
  std::int64_t columns[2] = {-1, -1};
  for (std::int64_t row = blockIdx.x; row < task.rows; row += gridDim.x) {
    __syncthreads();  // the row before is done
    findAngles(task, part, row, cosines, sines);
    __syncthreads();
    if (!hasPacket) continue;
    PartOfRow<kElement, kVector>(task, part, row, cosines, sines)
        .runPacket(packet, [&](int which, std::int64_t column, const float(&values)[kVector]) {
          columns[which] = column;
#pragma unroll
          for (int v = 0; v < kVector; ++v) sums[which][v] += values[v];
        });
  }
  float* const group = to.parts + blockIdx.x * task.width + part.first;
#pragma unroll
  for (int which = 0; which < 2; ++which)
#pragma unroll
    for (int v = 0; columns[which] >= 0 && v < kVector; ++v) group[columns[which] + v] = sums[which][v];
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

template <int kVector>
auto sumKernelFor(Element element) {
  switch (element) {
    case Element::F16: return splitRotaryWithSums<Element::F16, kVector>;
    case Element::BF16: return splitRotaryWithSums<Element::BF16, kVector>;
    case Element::F32: break;
  }
  return splitRotaryWithSums<Element::F32, kVector>;
}

int numSlicesOf(const SplitRotaryTask& task) {
  std::int64_t slices = 0;
  for (int i = 0; i < task.numParts; ++i)
    slices += task.isVectorized ? numSlices<kVectorWidth>(task.parts[i]) : numSlices<1>(task.parts[i]);
  return static_cast<int>(slices);
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

int numSumGroups(const SplitRotaryTask& task, int numMultiprocessors) {
  constexpr std::int64_t kBlocksOfMultiprocessor = 8;
  const std::int64_t blocks = kBlocksOfMultiprocessor * numMultiprocessors;
  const std::int64_t groups = blocks / std::max(numSlicesOf(task), 1);
  return static_cast<int>(std::clamp<std::int64_t>(groups, 1, std::max<std::int64_t>(task.rows, 1)));
}

void launchSplitRotary(const SplitRotaryTask& task, const SplitRotarySums& sums, Stream stream) {
  const auto kernel = task.isVectorized ? sumKernelFor<kVectorWidth>(task.element) : sumKernelFor<1>(task.element);
  const dim3 grid(static_cast<unsigned>(sums.groups), static_cast<unsigned>(numSlicesOf(task)));
  const bool hasElements = task.rows > 0 && task.width > 0;
  if (hasElements) launch(kernel, grid, dim3(kSumThreads), 0, stream, task, sums);
  launchPartSums({.parts = sums.parts,
                  .items = task.width,
                  .terms = hasElements ? sums.groups : 0,
                  .termStride = task.width,
                  .to = {.data = sums.biasGradient, .element = task.element, .access = device::Access::Row},
                  .cols = task.width},
                 stream);
}

}  // namespace fuseline::cuda
