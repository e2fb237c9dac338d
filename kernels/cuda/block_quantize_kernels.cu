// Blocks of 1x128, 128x128, 1x32 and 32x32 elements: both copies in one pass over x.
//
// A block of threads holds a tile of 128 x 128 elements, hence whole blocks in either direction.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_quantize_launch.h"

#include "kernels/cuda/launch.h"
#include "kernels/cuda/task_batch.h"

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/device/block_codes.h"

namespace fuseline::cuda {

namespace {

using namespace device;

template <CopyKind kKind>
__global__ void __launch_bounds__(kTileThreads, kTileBlocksAtOnce)
    quantizeBlocks(const __grid_constant__ TaskBatch<BlockQuantization> batch) {
  __shared__ TileMemory shared;
  const BlockQuantization& task = batch.tasks[blockIdx.z];
  const std::int64_t tiles = (task.rows + kTileSide - 1) / kTileSide;
  for (std::int64_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const PatchPlace place = patchPlace(tile, blockIdx.x, task.rows, task.cols);
    const HeldPatch patch(task.element, task.x, task.cols, place);
    quantizePatch<kKind>(shared, {task.rowwise, task.columnwise}, {task.rows, task.cols, task.cols}, place, patch);
    __syncthreads();
  }
}

/// A thread has one element: only copies that a product does not take as codes are read back.
__global__ void __launch_bounds__(kBlockThreads) dequantizeBlocks(const __grid_constant__ BlockDequantization task) {
  const std::int64_t elements = task.rows * task.cols;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < elements;
       i += stride) {
    const std::int64_t row = i / task.cols;
    const std::int64_t col = i % task.cols;
    const std::int64_t scale = row / task.blockRows * task.gridCols + col / task.blockCols;
    const float factor = task.isE8m0 ? E8m0::toFloat(static_cast<const std::uint8_t*>(task.scales)[scale])
                                     : static_cast<const float*>(task.scales)[scale];
    storeElement(task.element, task.out, i, decode(task.codes[i], task.code) * factor);
  }
}

auto kernelOf(CopyKind kind) {
  switch (kind) {
    case CopyKind::Float8Square: return quantizeBlocks<CopyKind::Float8Square>;
    case CopyKind::MxLine: return quantizeBlocks<CopyKind::MxLine>;
    case CopyKind::MxSquare: return quantizeBlocks<CopyKind::MxSquare>;
    case CopyKind::Float8Line:
    case CopyKind::Tensor: break;
  }
  return quantizeBlocks<CopyKind::Float8Line>;
}

}  // namespace

void launchBlockQuantize(std::span<const BlockQuantization> tensors, CopyKind kind, Stream stream) {
  launchInBatches(tensors, [&](std::span<const BlockQuantization> tasks, const TaskBatch<BlockQuantization>& batch) {
    launch(kernelOf(kind), tileGrid(tasks), dim3(kTilePatches, kTilePatches), 0, stream, batch);
  });
}

void launchBlockDequantize(const BlockDequantization& dequantization, Stream stream) {
  constexpr std::int64_t kMaxBlocks = 65535;
  const std::int64_t elements = dequantization.rows * dequantization.cols;
  if (elements == 0) return;
  const std::int64_t blocks = std::min((elements + kBlockThreads - 1) / kBlockThreads, kMaxBlocks);
  launch(dequantizeBlocks, dim3(static_cast<unsigned>(blocks)), dim3(kBlockThreads), 0, stream, dequantization);
}

}  // namespace fuseline::cuda
