// Amax, cast and transpose of tensors with one scale, dequantization, and the update of delayed scales.
//
// A block of threads has a tile of x: it is read once, cast for both directions, and the columnwise values go through
// shared memory so that they are written in whole rows, too.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize/quantize_launch.h"

#include "kernels/cuda/stream/launch.h"
#include "kernels/cuda/stream/task_batch.h"

#include <algorithm>
#include <bit>

#include <cuda_runtime.h>

#include "kernels/cuda/device/code_tile.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr int kAmaxVector = 8;
constexpr int kCodeVector = sizeof(CodePacket);
/// Blocks that search for an amax; each adds one atomic operation.
constexpr std::int64_t kAmaxBlocksPerMultiprocessor = 8;

__global__ void __launch_bounds__(kBlockThreads) findAmax(const __grid_constant__ TaskBatch<AmaxSearch> batch) {
  const AmaxSearch& task = batch.tasks[blockIdx.z];
  float largest = 0.0f;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads * kAmaxVector;
  for (std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x) * kAmaxVector;
       first < task.elements; first += stride) {
    float values[kAmaxVector];
    const std::int64_t left = task.elements - first;
    const int count = left < kAmaxVector ? static_cast<int>(left) : kAmaxVector;
    loadElements<kAmaxVector>(task.element, task.x, first, count, values);
    for (int v = 0; v < kAmaxVector; ++v) largest = largerOf(fabsf(values[v]), largest);
  }
  raiseAmax(task.amax, largest, static_cast<int>(threadIdx.x));
}

struct FloatRanges {
  static constexpr int kMaxRanges = 128;
  float* firsts[kMaxRanges] = {};
  int counts[kMaxRanges] = {};
};

/// A warp has a range at a time.
__global__ void __launch_bounds__(kBlockThreads)
    clearValues(const __grid_constant__ FloatRanges ranges, int numRanges) {
  constexpr int kWarps = kBlockThreads / kWarpLanes;
  for (int range = static_cast<int>(threadIdx.x) / kWarpLanes; range < numRanges; range += kWarps)
    for (int i = static_cast<int>(threadIdx.x) % kWarpLanes; i < ranges.counts[range]; i += kWarpLanes)
      ranges.firsts[range][i] = 0.0f;
}

__device__ float scaleOf(const TensorQuantization& task, const CodedCopy& copy) {
  return task.scale ? *task.scale : scaleFromAmax(*task.amax, copy.code, copy.rule);
}

/// For the first thread of a tensor's tiles.
__device__ void writeInverse(const TensorQuantization& task, const CodedCopy& copy) {
  if (copy.codes) *static_cast<float*>(copy.scales) = 1.0f / scaleOf(task, copy);
}

/// The amax of the thread's patch, if requested. The scale is loaded after the patch.
template <Element kElement>
__device__ float quantizeTileAt(const TensorQuantization& task, const PatchPlace& place, TransposedTile& shared) {
  const HeldPatch<kElement> patch(task.x, task.cols, place);
  const float largest = task.raised ? largestOfPatch(patch) : 0.0f;
  storeCopies(shared, {task.rowwise, scaleOf(task, task.rowwise)}, {task.columnwise, scaleOf(task, task.columnwise)},
              {task.rows, task.cols, task.cols}, place, patch);
  return largest;
}

/// All tasks have elements of this type.
template <Element kElement>
__global__ void __launch_bounds__(kTileThreads, HeldPatch<kElement>::kBlocksAtOnce)
    quantizeTiles(const __grid_constant__ TaskBatch<TensorQuantization> batch) {
  __shared__ TransposedTile shared;
  const BlockTile tile = blockTile(batch.tasks);
  const TensorQuantization& task = batch.tasks[tile.matrix];
  const float largest = quantizeTileAt<kElement>(task, patchPlace(tile.row, tile.col, task.rows, task.cols), shared);
  if (tile.row == 0 && tile.col == 0 && tileThread() == 0) {
    writeInverse(task, task.rowwise);
    writeInverse(task, task.columnwise);
  }
  if (task.raised) raiseAmax(task.raised, largest, tileThread());
}

auto quantizeTilesOf(Element element) {
  switch (element) {
    case Element::F16: return quantizeTiles<Element::F16>;
    case Element::BF16: return quantizeTiles<Element::BF16>;
    case Element::F32: break;
  }
  return quantizeTiles<Element::F32>;
}

struct FewValues {
  std::int64_t values[kBlockThreads];
};

__global__ void __launch_bounds__(kBlockThreads)
    writeValues(const __grid_constant__ FewValues values, int count, std::int64_t* to) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) to[i] = values.values[i];
}

__global__ void copyScale(const float* scale, float* first, float* second) {
  *first = *scale;
  if (second) *second = *scale;
}

__device__ void writeInverses(const InverseScales& inverses) {
  const float inverse = 1.0f / *inverses.scale;
  if (inverses.first) *inverses.first = inverse;
  if (inverses.second) *inverses.second = inverse;
}

__global__ void invertScale(const __grid_constant__ InverseScales inverses) { writeInverses(inverses); }

/// All rows of a patch are requested at once.
__device__ void transposeTileAt(const CodeTransposition& task, const PatchPlace& place, TransposedTile& shared) {
  CodePacket packets[kPatch] = {};
#pragma unroll
  for (int row = 0; row < kPatch; ++row)
    if (row < place.numRows && place.numCols > 0)
      packets[row] = loadPacket(task.codes + (place.row + row) * task.cols + place.col, kPatch);
  storeTransposed(shared, task.to, task.rows, task.cols, place, packets);
}

__global__ void __launch_bounds__(kTileThreads, kTileBlocksAtOnce)
    transposeTiles(const __grid_constant__ CodeTransposition task) {
  __shared__ TransposedTile shared;
  if (task.inverses.scale && blockIdx.x == 0 && blockIdx.y == 0 && tileThread() == 0) writeInverses(task.inverses);
  const std::int64_t tiles = (task.rows + kTileSide - 1) / kTileSide;
  for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y)
    transposeTileAt(task, patchPlace(tile, blockIdx.x, task.rows, task.cols), shared);
}

__global__ void __launch_bounds__(kBlockThreads) dequantizeCodes(const __grid_constant__ TensorDequantization task) {
  const float inverseScale = *task.inverseScale;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads * kCodeVector;
  for (std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x) * kCodeVector;
       first < task.elements; first += stride) {
    const std::int64_t left = task.elements - first;
    const int count = left < kCodeVector ? static_cast<int>(left) : kCodeVector;
    const CodePacket codes = loadPacket(task.codes + first, count);
    float values[kCodeVector];
#pragma unroll
    for (int v = 0; v < kCodeVector; ++v)
      values[v] = decode(static_cast<std::uint8_t>(codes >> (8 * v)), task.code) * inverseScale;
    storeElements<kCodeVector>(task.element, task.out, first, count, values);
  }
}

/// One block a state. Rows move up in chunks: a chunk is read before it is written.
__global__ void __launch_bounds__(kBlockThreads) updateScales(const __grid_constant__ ScaleUpdates updates) {
  float* const history = updates.histories[blockIdx.x];
  const float last = history[0];
  if (last == 0.0f) return;  // the whole block: the tensor was not used
  const int length = updates.historyLength;
  float largest = last;
  for (int row = static_cast<int>(threadIdx.x) + 1; row < length; row += kBlockThreads)
    largest = largerOf(history[row], largest);
  largest = largestOfBlock(largest, static_cast<int>(threadIdx.x));
  if (threadIdx.x == 0) {
    float& scale = *updates.scales[blockIdx.x];
    scale = delayedScale(updates.takesMostRecent ? last : largest, scale, updates.scaledLargest[blockIdx.x]);
  }
  for (int first = 1; first < length; first += kBlockThreads) {
    const int row = first + static_cast<int>(threadIdx.x);
    const float next = row + 1 < length ? history[row + 1] : last;
    __syncthreads();
    if (row < length) history[row] = next;
    __syncthreads();
  }
  if (threadIdx.x == 0) history[0] = 0.0f;
}

}  // namespace

void launchAmax(std::span<const AmaxSearch> tensors, int numMultiprocessors, Stream stream) {
  launchInBatches(tensors, [&](std::span<const AmaxSearch> tasks, const TaskBatch<AmaxSearch>& batch) {
    const std::int64_t elements = std::ranges::max(tasks, {}, &AmaxSearch::elements).elements;
    if (elements == 0) return;
    const std::int64_t wanted = (elements + kBlockThreads * kAmaxVector - 1) / (kBlockThreads * kAmaxVector);
    const std::int64_t blocks = std::min<std::int64_t>(wanted, numMultiprocessors * kAmaxBlocksPerMultiprocessor);
    launch(findAmax, dim3(static_cast<unsigned>(blocks), 1, static_cast<unsigned>(tasks.size())), dim3(kBlockThreads),
           0, stream, batch);
  });
}

void launchClear(std::span<const std::span<float>> values, Stream stream) {
  constexpr std::size_t kMaxRanges = FloatRanges::kMaxRanges;
  for (std::size_t first = 0; first < values.size(); first += kMaxRanges) {
    const auto next = values.subspan(first, std::min(values.size() - first, kMaxRanges));
    FloatRanges ranges;
    for (std::size_t i = 0; i < next.size(); ++i) {
      ranges.firsts[i] = next[i].data();
      ranges.counts[i] = static_cast<int>(next[i].size());
    }
    launch(clearValues, dim3(1), dim3(kBlockThreads), 0, stream, ranges, static_cast<int>(next.size()));
  }
}

void launchQuantize(std::span<const TensorQuantization> tensors, Stream stream) {
  launchInBatches(tensors, [&](std::span<const TensorQuantization> tasks, const TaskBatch<TensorQuantization>& batch) {
    launch(quantizeTilesOf(tasks.front().element), tileGrid(tasks), dim3(kTilePatches, kTilePatches), 0, stream, batch);
  });
}

void launchWrite(std::span<const std::int64_t> values, std::int64_t* to, Stream stream) {
  for (std::size_t first = 0; first < values.size(); first += kBlockThreads) {
    const auto next = values.subspan(first, std::min<std::size_t>(values.size() - first, kBlockThreads));
    FewValues few;
    std::ranges::copy(next, few.values);
    launch(writeValues, dim3(1), dim3(kBlockThreads), 0, stream, few, static_cast<int>(next.size()), to + first);
  }
}

void launchCopyScale(const float* scale, float* first, float* second, Stream stream) {
  launch(copyScale, dim3(1), dim3(1), 0, stream, scale, first, second);
}

void launchInvertScale(const InverseScales& inverses, Stream stream) {
  launch(invertScale, dim3(1), dim3(1), 0, stream, inverses);
}

void launchTransposeCodes(const CodeTransposition& task, Stream stream) {
  if (task.rows == 0 || task.cols == 0) return;
  launch(transposeTiles, tileGrid(task.rows, task.cols), dim3(kTilePatches, kTilePatches), 0, stream, task);
}

void launchDequantize(const TensorDequantization& task, Stream stream) {
  if (task.elements == 0) return;
  constexpr std::int64_t kMaxBlocks = 65535;
  const std::int64_t wanted = (task.elements + kBlockThreads * kCodeVector - 1) / (kBlockThreads * kCodeVector);
  launch(dequantizeCodes, dim3(static_cast<unsigned>(std::min(wanted, kMaxBlocks))), dim3(kBlockThreads), 0, stream,
         task);
}

void launchScaleUpdates(const ScaleUpdates& updates, Stream stream) {
  if (updates.count == 0) return;
  launch(updateScales, dim3(static_cast<unsigned>(updates.count)), dim3(kBlockThreads), 0, stream, updates);
}

}  // namespace fuseline::cuda
