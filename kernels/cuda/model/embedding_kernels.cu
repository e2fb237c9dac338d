// Embedding: rows are copied. Backward sorts positions by row (radix sort of 8 bits a pass, stable, without atomics),
// and a block for each row that occurs sums its gradients in the order of the positions: the same bits in every run.
// A row that occurs often keeps its one block busy for as long.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/embedding_launch.h"

#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <algorithm>
#include <utility>

#include <cuda_runtime.h>

#include "kernels/cuda/device/elements.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr int kDigits = 256;
static_assert(kDigits == kBlockThreads, "a thread has a digit");
constexpr int kDigitBits = 8;
constexpr int kKeysPerBlock = 1024;

std::int64_t blocksFor(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }

/// Keys are rows; numRows stands for those without a gradient.
struct SortPass {
  const std::int32_t* keys = nullptr;
  const std::int32_t* positions = nullptr;
  std::int32_t* sortedKeys = nullptr;
  std::int32_t* sortedPositions = nullptr;
  std::int32_t* offsets = nullptr;  // [kDigits, blocks]: of the keys with this digit in this block
  std::int64_t count = 0;
  std::int64_t blocks = 0;
  int shift = 0;
};

__device__ std::int64_t rowOf(const EmbeddingTask& task, std::int64_t index) {
  return task.tokens > 0 ? index % task.tokens : task.ids[index];
}

__device__ std::int64_t firstOfThread() { return static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; }

template <int kVector>
__global__ void __launch_bounds__(kBlockThreads) lookUp(const __grid_constant__ EmbeddingTask task) {
  const std::int64_t row = rowOf(task, blockIdx.x);
  for (std::int64_t col = static_cast<std::int64_t>(threadIdx.x) * kVector; col < task.width;
       col += static_cast<std::int64_t>(kBlockThreads) * kVector) {
    float values[kVector];
    loadElements<kVector>(task.element, task.weight, row * task.width + col, kVector, values);
    storeElements<kVector>(task.element, task.y, static_cast<std::int64_t>(blockIdx.x) * task.width + col, kVector,
                           values);
  }
}

/// The gradient of the table itself, or 0.
__global__ void __launch_bounds__(kBlockThreads) beginGradient(const __grid_constant__ EmbeddingTask task) {
  const std::int64_t count = task.numRows * task.width;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads * kVectorWidth;
  for (std::int64_t i = firstOfThread() * kVectorWidth; i < count; i += step) {
    const std::int64_t rest = count - i;
    const int inside = static_cast<int>(rest < kVectorWidth ? rest : kVectorWidth);
    float values[kVectorWidth] = {};
    if (task.dTable) loadElements<kVectorWidth>(task.element, task.dTable, i, inside, values);
    storeElements<kVectorWidth>(task.element, task.dWeight, i, inside, values);
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    makeKeys(const __grid_constant__ EmbeddingTask task, std::int32_t* keys, std::int32_t* positions) {
  const std::int64_t i = firstOfThread();
  if (i >= task.count) return;
  const std::int64_t row = rowOf(task, i);
  keys[i] = static_cast<std::int32_t>(row == task.padding ? task.numRows : row);
  positions[i] = static_cast<std::int32_t>(i);
}

/// The digits of the block's keys.
__device__ int loadDigits(const SortPass& pass, std::uint8_t* digits) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kKeysPerBlock;
  const std::int64_t rest = pass.count - first;
  const int inside = static_cast<int>(rest < kKeysPerBlock ? rest : kKeysPerBlock);
  for (int i = static_cast<int>(threadIdx.x); i < inside; i += kBlockThreads)
    digits[i] = static_cast<std::uint8_t>(static_cast<std::uint32_t>(pass.keys[first + i]) >> pass.shift);
  __syncthreads();
  return inside;
}

__global__ void __launch_bounds__(kBlockThreads) countDigits(const __grid_constant__ SortPass pass) {
  __shared__ std::uint8_t digits[kKeysPerBlock];
  const int inside = loadDigits(pass, digits);
  std::int32_t found = 0;
  for (int i = 0; i < inside; ++i) found += digits[i] == threadIdx.x ? 1 : 0;
  pass.offsets[static_cast<std::int64_t>(threadIdx.x) * pass.blocks + blockIdx.x] = found;
}

/// One block: counts become the places of the first key of each digit and block.
__global__ void __launch_bounds__(kBlockThreads) addCounts(const __grid_constant__ SortPass pass) {
  __shared__ std::int32_t firsts[kDigits];
  std::int32_t* const own = pass.offsets + static_cast<std::int64_t>(threadIdx.x) * pass.blocks;
  std::int32_t sum = 0;
  for (std::int64_t block = 0; block < pass.blocks; ++block) sum += own[block];
  firsts[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    std::int32_t first = 0;
    for (int digit = 0; digit < kDigits; ++digit) {
      const std::int32_t count = firsts[digit];
      firsts[digit] = first;
      first += count;
    }
  }
  __syncthreads();
  std::int32_t place = firsts[threadIdx.x];
  for (std::int64_t block = 0; block < pass.blocks; ++block) {
    const std::int32_t count = own[block];
    own[block] = place;
    place += count;
  }
}

__global__ void __launch_bounds__(kBlockThreads) moveKeys(const __grid_constant__ SortPass pass) {
  __shared__ std::uint8_t digits[kKeysPerBlock];
  const int inside = loadDigits(pass, digits);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kKeysPerBlock;
  std::int32_t place = pass.offsets[static_cast<std::int64_t>(threadIdx.x) * pass.blocks + blockIdx.x];
  for (int i = 0; i < inside; ++i) {
    if (digits[i] != threadIdx.x) continue;
    pass.sortedKeys[place] = pass.keys[first + i];
    pass.sortedPositions[place] = pass.positions[first + i];
    ++place;
  }
}

/// Only the block at the first position of a row has work.
template <int kVector>
__global__ void __launch_bounds__(kBlockThreads)
    addRows(const __grid_constant__ EmbeddingTask task, const std::int32_t* keys, const std::int32_t* positions) {
  const std::int64_t first = blockIdx.x;
  const std::int32_t row = keys[first];
  if (row == task.numRows || (first > 0 && keys[first - 1] == row)) return;
  for (std::int64_t col = static_cast<std::int64_t>(threadIdx.x) * kVector; col < task.width;
       col += static_cast<std::int64_t>(kBlockThreads) * kVector) {
    float sums[kVector];
    loadElements<kVector>(task.element, task.dWeight, row * task.width + col, kVector, sums);
    for (std::int64_t i = first; i < task.count && keys[i] == row; ++i) {
      float dy[kVector];
      loadElements<kVector>(task.element, task.dy, positions[i] * task.width + col, kVector, dy);
#pragma unroll
      for (int v = 0; v < kVector; ++v) sums[v] += dy[v];
    }
    storeElements<kVector>(task.element, task.dWeight, row * task.width + col, kVector, sums);
  }
}

/// Keys and positions, twice each, then the offsets.
struct Scratch {
  Scratch(std::int32_t* memory, std::int64_t count)
      : keys(memory),
        positions(memory + count),
        otherKeys(memory + 2 * count),
        otherPositions(memory + 3 * count),
        offsets(memory + 4 * count) {}
  std::int32_t* keys;
  std::int32_t* positions;
  std::int32_t* otherKeys;
  std::int32_t* otherPositions;
  std::int32_t* offsets;
};

void sortPass(Scratch& scratch, std::int64_t count, int shift, Stream stream) {
  const std::int64_t blocks = blocksFor(count, kKeysPerBlock);
  const SortPass pass{.keys = scratch.keys,
                      .positions = scratch.positions,
                      .sortedKeys = scratch.otherKeys,
                      .sortedPositions = scratch.otherPositions,
                      .offsets = scratch.offsets,
                      .count = count,
                      .blocks = blocks,
                      .shift = shift};
  const dim3 grid(static_cast<unsigned>(blocks));
  launch(countDigits, grid, dim3(kBlockThreads), 0, stream, pass);
  launch(addCounts, dim3(1), dim3(kBlockThreads), 0, stream, pass);
  launch(moveKeys, grid, dim3(kBlockThreads), 0, stream, pass);
  std::swap(scratch.keys, scratch.otherKeys);
  std::swap(scratch.positions, scratch.otherPositions);
}

}  // namespace

void launchEmbedding(const EmbeddingTask& task, Stream stream) {
  if (task.count == 0) return;
  launch(task.width % kVectorWidth == 0 ? lookUp<kVectorWidth> : lookUp<1>, dim3(static_cast<unsigned>(task.count)),
         dim3(kBlockThreads), 0, stream, task);
}

std::size_t embeddingScratch(std::int64_t count) {
  return static_cast<std::size_t>(4 * count + kDigits * blocksFor(count, kKeysPerBlock));
}

void launchEmbeddingGradient(const EmbeddingTask& task, std::int32_t* memory, Stream stream) {
  constexpr std::int64_t kMaxBlocks = 4096;
  const std::int64_t packets = blocksFor(task.numRows * task.width, kVectorWidth * kBlockThreads);
  launch(beginGradient, dim3(static_cast<unsigned>(std::min(packets, kMaxBlocks))), dim3(kBlockThreads), 0, stream,
         task);
  if (!task.dy || task.count == 0) return;
  Scratch scratch(memory, task.count);
  launch(makeKeys, dim3(static_cast<unsigned>(blocksFor(task.count, kBlockThreads))), dim3(kBlockThreads), 0, stream,
         task, scratch.keys, scratch.positions);
  for (int shift = 0; task.numRows >> shift > 0; shift += kDigitBits) sortPass(scratch, task.count, shift, stream);
  launch(task.width % kVectorWidth == 0 ? addRows<kVectorWidth> : addRows<1>, dim3(static_cast<unsigned>(task.count)),
         dim3(kBlockThreads), 0, stream, task, scratch.keys, scratch.positions);
}

}  // namespace fuseline::cuda
