// Blocks of 1x128, 128x128, 1x32 and 32x32 elements: rowwise and columnwise quantized tensors in one pass over x.
//
// A block of threads holds a tile of 128 x 128 elements, which are whole blocks in either direction.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize/block_quantize_launch.h"

#include "kernels/cuda/stream/launch.h"
#include "kernels/cuda/stream/task_batch.h"

#include <bit>
#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/cuda/device/block_codes.h"

namespace fuseline::cuda {

namespace {

using namespace device;

template <CopyKind kKind, Element kElement>
__global__ void __launch_bounds__(kTileThreads, HeldPatch<kElement>::kBlocksAtOnce)
    quantizeBlocks(const __grid_constant__ TaskBatch<BlockQuantization> batch) {
  __shared__ TileMemory shared;
  const BlockTile tile = blockTile(batch.tasks);
  const BlockQuantization& task = batch.tasks[tile.matrix];
  const PatchPlace place = patchPlace(tile.row, tile.col, task.rows, task.cols);
  const HeldPatch<kElement> patch(task.x, task.cols, place);
  quantizePatch<kKind>(shared, {task.rowwise, task.columnwise}, {task.rows, task.cols, task.cols}, place, patch);
}

/// Blocks have sides that are powers of two.
struct BlockPlaces {
  int rowShift = 0;
  int colShift = 0;

  __device__ std::int64_t scaleAt(const BlockDequantization& task, std::int64_t row, std::int64_t col) const {
    return (row >> rowShift) * task.scaleRowStride + (col >> colShift) * task.scaleColStride;
  }
};

__device__ float factorAt(const BlockDequantization& task, std::int64_t scale) {
  return task.isE8m0 ? E8m0::toFloat(static_cast<const std::uint8_t*>(task.scales)[scale])
                     : static_cast<const float*>(task.scales)[scale];
}

/// The eight encoded values of a packet lie in one block, or each in a different one.
__device__ void storeDecoded(const BlockDequantization& task, const BlockPlaces& places, std::int64_t row,
                             std::int64_t col, CodePacket codes) {
  float values[kPatch];
  const bool isOneBlock = task.blockCols >= kPatch;
  const float common = isOneBlock ? factorAt(task, places.scaleAt(task, row, col)) : 1.0f;
#pragma unroll
  for (int i = 0; i < kPatch; ++i) {
    const float factor = isOneBlock ? common : factorAt(task, places.scaleAt(task, row, col + i));
    values[i] = decode(static_cast<std::uint8_t>(codes >> (8 * i)), task.code) * factor;
  }
  storePacketOf(task.element, task.out, row * task.cols + col, values);
}

/// For whole packets: all rows of a patch are requested at once.
__device__ void decodePatch(const BlockDequantization& task, const BlockPlaces& places, const PatchPlace& place) {
  CodePacket packets[kPatch] = {};
#pragma unroll
  for (int row = 0; row < kPatch; ++row)
    if (row < place.numRows) packets[row] = loadPacket(task.codes + (place.row + row) * task.cols + place.col, kPatch);
#pragma unroll
  for (int row = 0; row < kPatch; ++row)
    if (row < place.numRows) storeDecoded(task, places, place.row + row, place.col, packets[row]);
}

__device__ void decodeSingly(const BlockDequantization& task, const BlockPlaces& places, const PatchPlace& place) {
  for (int i = 0; i < place.numRows * place.numCols; ++i) {
    const std::int64_t row = place.row + i / place.numCols;
    const std::int64_t col = place.col + i % place.numCols;
    const float factor = factorAt(task, places.scaleAt(task, row, col));
    const std::int64_t index = row * task.cols + col;
    storeElement(task.element, task.out, index, decode(task.codes[index], task.code) * factor);
  }
}

__global__ void __launch_bounds__(kTileThreads, kTileBlocksAtOnce)
    dequantizeBlocks(const __grid_constant__ BlockDequantization task, BlockPlaces places) {
  const std::int64_t tiles = (task.rows + kTileSide - 1) / kTileSide;
  for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const PatchPlace place = patchPlace(tile, blockIdx.x, task.rows, task.cols);
    if (place.numCols == 0) continue;
    task.cols % kPatch == 0 ? decodePatch(task, places, place) : decodeSingly(task, places, place);
  }
}

template <CopyKind kKind>
auto kernelOf(Element element) {
  switch (element) {
    case Element::F16: return quantizeBlocks<kKind, Element::F16>;
    case Element::BF16: return quantizeBlocks<kKind, Element::BF16>;
    case Element::F32: break;
  }
  return quantizeBlocks<kKind, Element::F32>;
}

auto kernelOf(CopyKind kind, Element element) {
  switch (kind) {
    case CopyKind::Float8Square: return kernelOf<CopyKind::Float8Square>(element);
    case CopyKind::MxLine: return kernelOf<CopyKind::MxLine>(element);
    case CopyKind::MxSquare: return kernelOf<CopyKind::MxSquare>(element);
    case CopyKind::Float8Line:
    case CopyKind::Tensor: break;
  }
  return kernelOf<CopyKind::Float8Line>(element);
}

}  // namespace

void launchBlockQuantize(std::span<const BlockQuantization> tensors, CopyKind kind, Stream stream) {
  launchInBatches(tensors, [&](std::span<const BlockQuantization> tasks, const TaskBatch<BlockQuantization>& batch) {
    launch(kernelOf(kind, tasks.front().element), tileGrid(tasks), dim3(kTilePatches, kTilePatches), 0, stream, batch);
  });
}

void launchBlockDequantize(const BlockDequantization& dequantization, Stream stream) {
  if (dequantization.rows * dequantization.cols == 0) return;
  const BlockPlaces places{.rowShift = std::countr_zero(static_cast<std::uint64_t>(dequantization.blockRows)),
                           .colShift = std::countr_zero(static_cast<std::uint64_t>(dequantization.blockCols))};
  launch(dequantizeBlocks, tileGrid(dequantization.rows, dequantization.cols), dim3(kTilePatches, kTilePatches), 0,
         stream, dequantization, places);
}

}  // namespace fuseline::cuda
