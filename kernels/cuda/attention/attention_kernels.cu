// Kernels between attention's GEMMs: the softmax of masked rows, its gradient, and sums over rows.
//
// A block has a row of scores: its threads keep the largest score and the sum of exponentials of their own columns,
// join them, and read the row again, from the cache, for the probabilities. Keys that the mask leaves out are not
// read; their probabilities are written as 0, because the next product reads whole rows. Sums are float32.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_launch.h"

#include "kernels/cuda/stream/launch.h"

#include <bit>
#include <type_traits>

#include <cuda_runtime.h>

#include "kernels/cuda/device/attention.h"
#include "kernels/cuda/device/elementwise.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr int kRowThreads = 128;
constexpr int kRowWarps = kRowThreads / kWarpLanes;

using Row = ScoreRow<ScoreRules, AttentionPass>;

/// Scores that a thread moves at once: 16 bytes of float32.
constexpr int kPacket = 4;

/// A packet of memory, of which the scores from `skipped` to `count` are the row's.
struct KeyPacket {
  std::int64_t key;
  std::int64_t index;  // in memory
  int count, skipped;
};

/// The scores of a row in memory. Rows begin and end in the middle of a packet if they are not whole packets.
struct ScoresOfRow {
  std::int64_t begin;
  std::int64_t keys;

  /// f(packet) for the packets that the running thread has, from the first that has a key of [first, last) on.
  template <class Function>
  __device__ void forEachPacket(std::int64_t first, std::int64_t last, const Function& f) const {
    constexpr std::int64_t kStep = std::int64_t{kRowThreads} * kPacket;
    const std::int64_t shift = begin % kPacket;
    for (std::int64_t step = (first + shift) / kStep * kStep; step < last + shift; step += kStep) {
      const std::int64_t key = step + static_cast<std::int64_t>(threadIdx.x) * kPacket - shift;
      if (key < last && key + kPacket > first) f(packetAt(key));
    }
  }

 private:
  __device__ KeyPacket packetAt(std::int64_t key) const {
    const std::int64_t left = keys - key;
    return {key, begin + key, left < kPacket ? static_cast<int>(left) : kPacket, key < 0 ? static_cast<int>(-key) : 0};
  }
};

/// The row of the running block.
template <class Task>
__device__ ScoresOfRow scoresOfRow(const Task& task) {
  const std::int64_t keys = task.rules.keys;
  return {(static_cast<std::int64_t>(blockIdx.y) * task.pass.rows + blockIdx.x) * keys, keys};
}

__device__ void loadScores(const float* from, const KeyPacket& packet, float (&out)[kPacket]) {
  loadElements<Element::F32, kPacket>(from, packet.index, packet.count, out, packet.skipped);
}

template <Element kElement>
__device__ void storeScores(void* to, const KeyPacket& packet, const float (&values)[kPacket]) {
  storeElements<kElement, kPacket>(to, packet.index, packet.count, values, packet.skipped);
}

/// Over all threads of the block, in the same order for each of them.
__device__ RunningSum joined(RunningSum own) {
  __shared__ float largest[kRowWarps];
  __shared__ float sums[kRowWarps];
#pragma unroll
  for (int offset = kWarpLanes / 2; offset > 0; offset /= 2)
    own.add({__shfl_xor_sync(0xffffffffu, own.largest, offset), __shfl_xor_sync(0xffffffffu, own.sum, offset)});
  if (threadIdx.x % kWarpLanes == 0) {
    largest[threadIdx.x / kWarpLanes] = own.largest;
    sums[threadIdx.x / kWarpLanes] = own.sum;
  }
  __syncthreads();
  RunningSum all;
  for (int warp = 0; warp < kRowWarps; ++warp) all.add({largest[warp], sums[warp]});
  __syncthreads();
  return all;
}

__device__ RowTotal totalOf(const Row& row, const ScoresOfRow& scores, const float* products) {
  RunningSum own;
  scores.forEachPacket(row.first(), row.last(), [&](const KeyPacket& packet) {
    float values[kPacket];
    loadScores(products, packet, values);
#pragma unroll
    for (int v = 0; v < kPacket; ++v)
      if (row.sees(packet.key + v)) own.add({row.score(packet.key + v, values[v]), 1.0f});
  });
  RunningSum all = joined(own);
  if (row.isInside()) all.add({row.sink(), 1.0f});
  return all.total(row.largestOffset() != 0);
}

/// With as many registers as seven blocks leave: the compiler's own choice, eight, spills on 8.9.
template <Element kElement>
__global__ void __launch_bounds__(kRowThreads, 7) softmaxRows(const __grid_constant__ AttentionSoftmax task) {
  const Row row(task.rules, task.pass, blockIdx.x, blockIdx.y);
  const ScoresOfRow scores = scoresOfRow(task);
  const RowTotal total = totalOf(row, scores, task.products);
  if (threadIdx.x == 0 && task.lse) storeTotal(task.lse + row.lseIndex(), row.largestOffset(), total);
  scores.forEachPacket(0, scores.keys, [&](const KeyPacket& packet) {
    const std::int64_t key = packet.key;
    float values[kPacket] = {};
    if (key < row.last() && key + kPacket > row.first()) {
      float shares[kPacket];
      row.template keptShares<kPacket>(key, shares);
      loadScores(task.products, packet, values);
#pragma unroll
      for (int v = 0; v < kPacket; ++v)
        values[v] = row.sees(key + v) ? total.probability(row.score(key + v, values[v])) * shares[v] : 0.0f;
    }
    storeScores<kElement>(task.probabilities, packet, values);
  });
}

/// The gradient of one scaled product before the softmax, with what it comes from.
struct PairGradient {
  float probability = 0.0f;
  float score = 0.0f;    // of the score, bias included
  float product = 0.0f;  // of the product of query and key
};

__device__ PairGradient gradientOf(const Row& row, std::int64_t key, float product, float gradProbability, float share,
                                   const RowTotal& total, float delta) {
  PairGradient gradient;
  if (!row.sees(key)) return gradient;
  gradient.probability = total.probability(row.score(key, product));
  gradient.score = gradient.probability * (gradProbability * share - delta);
  gradient.product = gradient.score * row.capSlope(key, product);
  return gradient;
}

template <Element kElement>
__global__ void __launch_bounds__(kRowThreads) gradientRows(const __grid_constant__ AttentionGradient task) {
  const Row row(task.rules, task.pass, blockIdx.x, blockIdx.y);
  const ScoresOfRow scores = scoresOfRow(task);
  const RowTotal total = loadTotal(task.lse + row.lseIndex(), row.largestOffset());
  const float delta = task.deltas[row.index()];
  scores.forEachPacket(0, scores.keys, [&](const KeyPacket& packet) {
    const std::int64_t key = packet.key;
    float products[kPacket] = {};
    float gradients[kPacket] = {};
    if (key < row.last() && key + kPacket > row.first()) {
      float shares[kPacket];
      row.template keptShares<kPacket>(key, shares);
      loadScores(task.products, packet, products);
      loadScores(task.gradProbabilities, packet, gradients);
#pragma unroll
      for (int v = 0; v < kPacket; ++v) {
        const PairGradient pair = gradientOf(row, key + v, products[v], gradients[v], shares[v], total, delta);
        products[v] = pair.probability * shares[v];
        gradients[v] = task.rules.scale * pair.product;
      }
    }
    storeScores<kElement>(task.probabilities, packet, products);
    storeScores<kElement>(task.gradProducts, packet, gradients);
  });
}

/// A thread has one pair of a query and a key, and adds over the units of the pass that share its bias.
__global__ void __launch_bounds__(kRowThreads) biasGradients(const __grid_constant__ AttentionGradient task) {
  const std::int64_t keys = task.rules.keys;
  const std::int64_t key = static_cast<std::int64_t>(blockIdx.y) * kRowThreads + threadIdx.x;
  if (key >= keys) return;
  for (std::int64_t unit = 0; unit < task.pass.units; ++unit) {
    const Row row(task.rules, task.pass, blockIdx.x, unit);
    const std::int64_t at = (unit * task.pass.rows + blockIdx.x) * keys + key;
    float share[1];
    row.template keptShares<1>(key, share);
    const RowTotal total = loadTotal(task.lse + row.lseIndex(), row.largestOffset());
    const PairGradient pair =
        gradientOf(row, key, task.products[at], task.gradProbabilities[at], share[0], total, task.deltas[row.index()]);
    const bool isBefore = task.rules.biasKind == ScoreBias::PreScale;
    task.gradBias[row.scoreIndex(task.rules.bias, key)] += isBefore ? task.rules.scale * pair.product : pair.score;
  }
}

__device__ bool isFinite(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7f800000u) != 0x7f800000u; }

/// blockIdx: row and unit of the pass; a thread has channels.
template <Element kElement>
__global__ void __launch_bounds__(kRowThreads) sumSeenKeys(const __grid_constant__ MaskedProduct task) {
  const Row row(task.rules, task.pass, blockIdx.x, blockIdx.y);
  const std::int64_t unit = task.pass.firstUnit + blockIdx.y;
  const std::int64_t entry = unit / task.rules.groups;
  const std::int64_t scores = (static_cast<std::int64_t>(blockIdx.y) * task.pass.rows + blockIdx.x) * task.rules.keys;
  const std::int64_t right = entry * task.rightBatchStride + unit % task.rules.groups * task.rightHeadStride;
  const std::int64_t result = entry * task.resultBatchStride +
                              (task.pass.firstRow + blockIdx.x) * task.resultTokenStride +
                              row.head() * task.resultHeadStride;
  for (std::int64_t d = threadIdx.x; d < task.channels; d += kRowThreads) {
    if (isFinite(loadElement(kElement, task.result, result + d))) continue;
    float sum = 0.0f;
    // Rare, and short of registers when unrolled.
#pragma unroll 1
    for (std::int64_t key = row.first(); key < row.last(); ++key)
      if (row.sees(key))
        sum += loadElement(kElement, task.scores, scores + key) *
               loadElement(kElement, task.right, right + key * task.rightTokenStride + d);
    storeElement(kElement, task.result, result + d, sum);
  }
}

/// A warp has a row of a head.
template <Element kElement>
__global__ void __launch_bounds__(kRowThreads) sumDeltas(const __grid_constant__ AttentionDeltas task) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kRowWarps + threadIdx.y;
  const bool isInside = index < task.entries * task.tokens * task.heads;
  const std::int64_t head = index % task.heads;
  const std::int64_t token = index / task.heads % task.tokens;
  const std::int64_t entry = index / task.heads / task.tokens;
  const std::int64_t ofY = entry * task.batchStride + token * task.tokenStride + head * task.headStride;
  const std::int64_t ofDy = entry * task.gradBatchStride + token * task.gradTokenStride + head * task.gradHeadStride;
  float sum = 0.0f;
  for (std::int64_t d = threadIdx.x; isInside && d < task.channels; d += kWarpLanes)
    sum += loadElement(kElement, task.y, ofY + d) * loadElement(kElement, task.dy, ofDy + d);
  sum = sumOverLanes(sum, kWarpLanes);
  if (isInside && threadIdx.x == 0) task.deltas[(entry * task.heads + head) * task.tokens + token] = sum;
}

/// Operands of a launch of sinkGradients.
struct SinkGradient {
  ScoreRules rules;
  std::int64_t entries;
  const float* lse;
  const float* deltas;
  float* gradients;
};

/// A warp has a head.
__global__ void __launch_bounds__(kWarpLanes) sinkGradients(const __grid_constant__ SinkGradient task) {
  const ScoreRules& rules = task.rules;
  const std::int64_t head = blockIdx.x;
  float sum = 0.0f;
  for (std::int64_t i = threadIdx.x; i < task.entries * rules.queries; i += kWarpLanes) {
    const std::int64_t index = (i / rules.queries * rules.heads + head) * rules.queries + i % rules.queries;
    const float* const kept = task.lse + (rules.isPacked ? i * rules.heads + head : index);
    const RowTotal total = loadTotal(kept, rules.largestOffset);
    if (total.logarithm != minusInfinity()) sum += total.exponential(rules.sinks[head]) * task.deltas[index];
  }
  sum = sumOverLanes(sum, kWarpLanes);
  if (threadIdx.x == 0) task.gradients[head] = -sum;
}

/// blockIdx: token, unit.
template <Element kElement>
__global__ void __launch_bounds__(kRowThreads) storeHeadRows(const __grid_constant__ HeadRows task) {
  const std::int64_t unit = task.firstUnit + blockIdx.y;
  const std::int64_t to =
      unit / task.groups * task.batchStride + blockIdx.x * task.tokenStride + unit % task.groups * task.headStride;
  const std::int64_t from = (static_cast<std::int64_t>(blockIdx.y) * task.tokens + blockIdx.x) * task.channels;
  for (std::int64_t d = threadIdx.x; d < task.channels; d += kRowThreads)
    storeElement(kElement, task.to, to + d, task.from ? task.from[from + d] : 0.0f);
}

/// launch(integral constant) for the element type.
template <class Launch>
void withElement(Element element, const Launch& launch) {
  switch (element) {
    case Element::F32: return launch(std::integral_constant<Element, Element::F32>());
    case Element::F16: return launch(std::integral_constant<Element, Element::F16>());
    case Element::BF16: return launch(std::integral_constant<Element, Element::BF16>());
  }
}

dim3 rowGrid(const AttentionPass& pass) {
  return {static_cast<unsigned>(pass.rows), static_cast<unsigned>(pass.units)};
}

}  // namespace

void launchAttentionSoftmax(const AttentionSoftmax& softmax, Stream stream) {
  if (softmax.pass.rows * softmax.pass.units == 0) return;
  withElement(softmax.element, [&](auto element) {
    launch(softmaxRows<element()>, rowGrid(softmax.pass), dim3(kRowThreads), 0, stream, softmax);
  });
}

void launchAttentionGradient(const AttentionGradient& gradient, Stream stream) {
  if (gradient.gradBias) {
    const std::int64_t columns = (gradient.rules.keys + kRowThreads - 1) / kRowThreads;
    launch(biasGradients, dim3(static_cast<unsigned>(gradient.pass.rows), static_cast<unsigned>(columns)),
           dim3(kRowThreads), 0, stream, gradient);
  }
  withElement(gradient.element, [&](auto element) {
    launch(gradientRows<element()>, rowGrid(gradient.pass), dim3(kRowThreads), 0, stream, gradient);
  });
}

void launchMaskedProduct(const MaskedProduct& product, Stream stream) {
  const ScoreRules& rules = product.rules;
  const bool isMasked = rules.left >= 0 || rules.right >= 0 || rules.sumsQ || rules.mask.data;
  if (!isMasked || product.pass.rows * product.pass.units == 0) return;
  withElement(product.element, [&](auto element) {
    launch(sumSeenKeys<element()>, rowGrid(product.pass), dim3(kRowThreads), 0, stream, product);
  });
}

void launchAttentionDeltas(const AttentionDeltas& deltas, Stream stream) {
  const std::int64_t rows = deltas.entries * deltas.tokens * deltas.heads;
  if (rows == 0) return;
  withElement(deltas.element, [&](auto element) {
    launch(sumDeltas<element()>, dim3(static_cast<unsigned>((rows + kRowWarps - 1) / kRowWarps)),
           dim3(kWarpLanes, kRowWarps), 0, stream, deltas);
  });
}

void launchSinkGradient(const ScoreRules& rules, std::int64_t entries, const float* lse, const float* deltas,
                        float* gradients, Stream stream) {
  launch(sinkGradients, dim3(static_cast<unsigned>(rules.heads)), dim3(kWarpLanes), 0, stream,
         SinkGradient{rules, entries, lse, deltas, gradients});
}

void launchHeadRows(const HeadRows& rows, Stream stream) {
  if (rows.tokens * rows.units == 0) return;
  withElement(rows.element, [&](auto element) {
    launch(storeHeadRows<element()>, dim3(static_cast<unsigned>(rows.tokens), static_cast<unsigned>(rows.units)),
           dim3(kRowThreads), 0, stream, rows);
  });
}

}  // namespace fuseline::cuda
