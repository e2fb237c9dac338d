// MoEPermute and MoEUnpermute. Slots are sorted by counting: a block of slots finds how many each expert gets, one
// block turns the counts into places, and each block places its slots in order. Rows are copied by destination and
// added by token, a block a row, without atomics: the same bits in every run.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/moved_rows_launch.h"

#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/device/elements.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr int kSlotsPerBlock = 1024;
constexpr int kWarpsPerBlock = kBlockThreads / kWarpLanes;

std::int64_t blocksFor(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }

__device__ std::int64_t firstOfThread() { return static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; }

__global__ void __launch_bounds__(kBlockThreads) clearSlots(std::int32_t* slotOfRow, std::int64_t rows) {
  const std::int64_t row = firstOfThread();
  if (row < rows) slotOfRow[row] = -1;
}

__global__ void __launch_bounds__(kBlockThreads)
    invertRows(const std::int64_t* rowOfSlot, std::int64_t slots, std::int32_t* slotOfRow, std::int64_t rows) {
  const std::int64_t slot = firstOfThread();
  if (slot >= slots) return;
  const std::int64_t row = rowOfSlot[slot];
  if (row >= 0 && row < rows) slotOfRow[row] = static_cast<std::int32_t>(slot);
}

/// The experts of the block's slots, -1 where there is none.
__device__ int loadExperts(const SlotSort& sort, std::int32_t* experts) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kSlotsPerBlock;
  const std::int64_t rest = sort.slots - first;
  const int inside = static_cast<int>(rest < kSlotsPerBlock ? rest : kSlotsPerBlock);
  for (int i = static_cast<int>(threadIdx.x); i < inside; i += kBlockThreads) {
    const std::int64_t expert = sort.experts[first + i];
    experts[i] = expert >= 0 && expert < sort.numExperts ? static_cast<std::int32_t>(expert) : -1;
  }
  __syncthreads();
  return inside;
}

/// scratch: [numExperts, blocks]. f(expert, its number in scratch) for the experts of the running thread.
template <class Function>
__device__ void forOwnExperts(const SlotSort& sort, const Function& f) {
  for (std::int64_t expert = threadIdx.x; expert < sort.numExperts; expert += kBlockThreads)
    f(static_cast<std::int32_t>(expert), expert * gridDim.x + blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads) countSlots(const __grid_constant__ SlotSort sort) {
  __shared__ std::int32_t experts[kSlotsPerBlock];
  const int inside = loadExperts(sort, experts);
  forOwnExperts(sort, [&](std::int32_t expert, std::int64_t at) {
    std::int32_t found = 0;
    for (int i = 0; i < inside; ++i) found += experts[i] == expert ? 1 : 0;
    sort.scratch[at] = found;
  });
}

/// Over all threads of the block: the sum of the values of the threads before.
__device__ std::int64_t sumBefore(std::int64_t value) {
  __shared__ std::int64_t sums[kBlockThreads];
  const int thread = static_cast<int>(threadIdx.x);
  sums[thread] = value;
  __syncthreads();
  for (int offset = 1; offset < kBlockThreads; offset *= 2) {
    const std::int64_t before = thread >= offset ? sums[thread - offset] : 0;
    __syncthreads();
    sums[thread] += before;
    __syncthreads();
  }
  return sums[thread] - value;
}

/// The experts that a thread of placeExperts has: neighbors.
struct OwnExperts {
  std::int64_t first, end;

  __device__ explicit OwnExperts(const SlotSort& sort) {
    const std::int64_t each = (sort.numExperts + kBlockThreads - 1) / kBlockThreads;
    first = each * threadIdx.x;
    end = first + each < sort.numExperts ? first + each : sort.numExperts;
  }
};

__device__ std::int64_t rowsOf(const SlotSort& sort, std::int64_t blocks, std::int64_t expert) {
  std::int64_t count = 0;
  for (std::int64_t block = 0; block < blocks; ++block) count += sort.scratch[expert * blocks + block];
  return (count + sort.alignSize - 1) / sort.alignSize * sort.alignSize;
}

/// One block: counts become the row of the first slot of each expert in each block.
__global__ void __launch_bounds__(kBlockThreads)
    placeExperts(const __grid_constant__ SlotSort sort, std::int64_t blocks) {
  const OwnExperts own(sort);
  std::int64_t rows = 0;
  for (std::int64_t expert = own.first; expert < own.end; ++expert) rows += rowsOf(sort, blocks, expert);
  std::int64_t first = sumBefore(rows);
  for (std::int64_t expert = own.first; expert < own.end; ++expert) {
    const std::int64_t end = first + rowsOf(sort, blocks, expert);
    if (sort.splitSizes) sort.splitSizes[expert] = (expert == sort.numExperts - 1 ? sort.rows : end) - first;
    for (std::int64_t block = 0; block < blocks; ++block) {
      std::int32_t& place = sort.scratch[expert * blocks + block];
      const std::int32_t count = place;
      place = static_cast<std::int32_t>(first);
      first += count;
    }
    first = end;
  }
}

__global__ void __launch_bounds__(kBlockThreads) placeSlots(const __grid_constant__ SlotSort sort) {
  __shared__ std::int32_t experts[kSlotsPerBlock];
  const int inside = loadExperts(sort, experts);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kSlotsPerBlock;
  if (sort.rowOfSlot)
    for (int i = static_cast<int>(threadIdx.x); i < inside; i += kBlockThreads)
      if (experts[i] < 0) sort.rowOfSlot[first + i] = -1;
  forOwnExperts(sort, [&](std::int32_t expert, std::int64_t at) {
    std::int32_t row = sort.scratch[at];
    for (int i = 0; i < inside; ++i) {
      if (experts[i] != expert) continue;
      if (sort.rowOfSlot) sort.rowOfSlot[first + i] = row;
      if (sort.slotOfRow) sort.slotOfRow[row] = static_cast<std::int32_t>(first + i);
      ++row;
    }
  });
}

/// f(column) for the packets of the running thread.
template <int kVector, class Function>
__device__ void forPackets(std::int64_t width, const Function& f) {
  constexpr std::int64_t kStep = static_cast<std::int64_t>(kBlockThreads) * kVector;
  for (std::int64_t col = static_cast<std::int64_t>(threadIdx.x) * kVector; col < width; col += kStep) f(col);
}

__device__ float factorOf(const MovedRows& rows, std::int64_t slot) {
  return rows.factors ? loadElement(rows.factorElement, rows.factors, slot) : 1.0f;
}

/// Where there is no factor, the packet keeps its bits.
template <int kVector>
__global__ void __launch_bounds__(kBlockThreads)
    copyRows(const __grid_constant__ MovedRows rows, const std::int32_t* slotOfRow) {
  const std::int64_t row = blockIdx.x;
  const std::int32_t slot = slotOfRow[row];
  const float factor = slot >= 0 ? factorOf(rows, slot) : 0.0f;
  const std::int64_t first = slot >= 0 ? slot / rows.terms * rows.width : 0;
  forPackets<kVector>(rows.width, [&](std::int64_t col) {
    float values[kVector] = {};
    if (slot >= 0) loadElements<kVector>(rows.element, rows.from, first + col, kVector, values);
#pragma unroll
    for (int v = 0; v < kVector; ++v) values[v] *= factor;
    storeElements<kVector>(rows.element, rows.to, row * rows.width + col, kVector, values);
  });
}

template <int kVector>
__global__ void __launch_bounds__(kBlockThreads)
    addRows(const __grid_constant__ MovedRows rows, const std::int64_t* rowOfSlot) {
  const std::int64_t token = blockIdx.x;
  forPackets<kVector>(rows.width, [&](std::int64_t col) {
    float sums[kVector] = {};
#pragma unroll 1
    for (std::int64_t slot = token * rows.terms; slot < (token + 1) * rows.terms; ++slot) {
      const std::int64_t row = rowOfSlot[slot];
      if (row < 0 || row >= rows.rowsFrom) continue;
      const float factor = factorOf(rows, slot);
      float values[kVector];
      loadElements<kVector>(rows.element, rows.from, row * rows.width + col, kVector, values);
#pragma unroll
      for (int v = 0; v < kVector; ++v) sums[v] += factor * values[v];
    }
#pragma unroll
    for (const void* const addend : rows.addends) {
      if (!addend) continue;
      float values[kVector];
      loadElements<kVector>(rows.element, addend, token * rows.width + col, kVector, values);
#pragma unroll
      for (int v = 0; v < kVector; ++v) sums[v] += values[v];
    }
    storeElements<kVector>(rows.element, rows.to, token * rows.width + col, kVector, sums);
  });
}

/// A warp a slot.
template <int kVector>
__global__ void __launch_bounds__(kBlockThreads) multiplyRows(const __grid_constant__ RowDots dots) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const std::int64_t slot = firstOfThread() / kWarpLanes;
  if (slot >= dots.slots) return;
  const std::int64_t row = dots.rowOfSlot[slot];
  float sum = 0.0f;
  if (row >= 0 && row < dots.rows)
    for (std::int64_t col = static_cast<std::int64_t>(lane) * kVector; col < dots.width; col += kWarpLanes * kVector) {
      float a[kVector], b[kVector];
      loadElements<kVector>(dots.element, dots.a, slot / dots.terms * dots.width + col, kVector, a);
      loadElements<kVector>(dots.element, dots.b, row * dots.width + col, kVector, b);
#pragma unroll
      for (int v = 0; v < kVector; ++v) sum += a[v] * b[v];
    }
  for (int offset = kWarpLanes / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (lane == 0) storeElement(dots.dotElement, dots.dots, slot, sum);
}

bool isVectorized(std::int64_t width) { return width % kVectorWidth == 0; }

dim3 gridOf(std::int64_t blocks) { return dim3(static_cast<unsigned>(blocks)); }

void clearSlotsOfRows(std::int32_t* slotOfRow, std::int64_t rows, Stream stream) {
  if (slotOfRow && rows > 0)
    launch(clearSlots, gridOf(blocksFor(rows, kBlockThreads)), dim3(kBlockThreads), 0, stream, slotOfRow, rows);
}

}  // namespace

std::size_t slotSortScratch(std::int64_t slots, std::int64_t numExperts) {
  return static_cast<std::size_t>(numExperts * blocksFor(slots, kSlotsPerBlock));
}

void launchSlotSort(const SlotSort& sort, Stream stream) {
  const std::int64_t blocks = blocksFor(sort.slots, kSlotsPerBlock);
  clearSlotsOfRows(sort.slotOfRow, sort.rows, stream);
  if (blocks > 0) launch(countSlots, gridOf(blocks), dim3(kBlockThreads), 0, stream, sort);
  launch(placeExperts, dim3(1), dim3(kBlockThreads), 0, stream, sort, blocks);
  if (blocks > 0) launch(placeSlots, gridOf(blocks), dim3(kBlockThreads), 0, stream, sort);
}

void launchSlotsOfRows(const std::int64_t* rowOfSlot, std::int64_t slots, std::int32_t* slotOfRow, std::int64_t rows,
                       Stream stream) {
  clearSlotsOfRows(slotOfRow, rows, stream);
  if (slots > 0)
    launch(invertRows, gridOf(blocksFor(slots, kBlockThreads)), dim3(kBlockThreads), 0, stream, rowOfSlot, slots,
           slotOfRow, rows);
}

void launchCopiedRows(const MovedRows& rows, const std::int32_t* slotOfRow, Stream stream) {
  if (rows.rowsTo > 0)
    launch(isVectorized(rows.width) ? copyRows<kVectorWidth> : copyRows<1>, gridOf(rows.rowsTo), dim3(kBlockThreads), 0,
           stream, rows, slotOfRow);
}

void launchRowSums(const MovedRows& rows, const std::int64_t* rowOfSlot, Stream stream) {
  if (rows.rowsTo > 0)
    launch(isVectorized(rows.width) ? addRows<kVectorWidth> : addRows<1>, gridOf(rows.rowsTo), dim3(kBlockThreads), 0,
           stream, rows, rowOfSlot);
}

void launchRowDots(const RowDots& dots, Stream stream) {
  if (dots.slots > 0)
    launch(isVectorized(dots.width) ? multiplyRows<kVectorWidth> : multiplyRows<1>,
           gridOf(blocksFor(dots.slots, kWarpsPerBlock)), dim3(kBlockThreads), 0, stream, dots);
}

}  // namespace fuseline::cuda
