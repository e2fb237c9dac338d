// MoEPermute with fused quantization: a block of threads gathers a tile of 128 x 128 elements of an expert's rows, and
// quantizes it in either direction, with scales of blocks or one that is known beforehand.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/permute_quantize_launch.h"

#include "kernels/cuda/stream/launch.h"
#include "kernels/cuda/stream/task_batch.h"

#include <cuda_runtime.h>

#include "kernels/cuda/device/quantized_outputs.h"

namespace fuseline::cuda {

namespace {

using namespace device;

/// As HeldPatch, of rows that are named by slot.
template <Element kElement>
class GatheredPatch {
 public:
  static constexpr int kRowsUnrolled = kPatch;  // registers have no index

  __device__ GatheredPatch(const PermutedQuantization& task, const PatchPlace& place) {
#pragma unroll
    for (int row = 0; row < kPatch; ++row) {
      if (row >= place.numRows || place.numCols == 0) continue;
      const std::int32_t slot = task.slotOfRow[place.row + row];
      if (slot >= 0) m_rows[row].requestWhole(task.x, slot / task.terms * task.cols + place.col);
    }
  }
  __device__ void row(int row, float (&x)[kPatch]) const { m_rows[row].takeAnew(x); }

 private:
  LoadedPacket<kElement, kPatch> m_rows[kPatch] = {};
};

template <Element kElement>
__device__ void storePatchRows(const PermutedQuantization& task, const PatchPlace& place,
                               const GatheredPatch<kElement>& patch) {
#pragma unroll
  for (int row = 0; row < kPatch; ++row) {
    if (row >= place.numRows || place.numCols == 0) continue;
    float x[kPatch];
    patch.row(row, x);
    storeElements<kElement, kPatch>(task.y, (place.row + row) * task.cols + place.col, kPatch, x);
  }
}

template <CopyKind kKind, Element kElement>
__global__ void __launch_bounds__(kTileThreads, kTileBlocksAtOnce)
    permuteQuantize(const __grid_constant__ TaskBatch<PermutedQuantization> batch) {
  __shared__ TileMemory shared;
  const BlockTile tile = blockTile(batch.tasks);
  const PermutedQuantization& task = batch.tasks[tile.matrix];
  const PatchPlace place = patchPlace(tile.row, tile.col, task.rows, task.cols);
  const MatrixSize size{task.rows, task.cols, task.cols};
  const GatheredPatch<kElement> patch(task, place);
  if (task.y) storePatchRows(task, place, patch);
  if constexpr (kKind == CopyKind::Tensor) {
    quantizeByTensor(shared, task.copies, *task.copies.scale, size, place, patch);
    if (task.copies.amax) raiseAmax(task.copies.amax, largestOfPatch(patch), tileThread());
  } else {
    quantizePatch<kKind>(shared, {task.copies.rowwise, task.copies.columnwise}, size, place, patch);
  }
}

template <CopyKind kKind>
auto kernelOf(Element element) {
  switch (element) {
    case Element::F16: return permuteQuantize<kKind, Element::F16>;
    case Element::BF16: return permuteQuantize<kKind, Element::BF16>;
    case Element::F32: break;
  }
  return permuteQuantize<kKind, Element::F32>;
}

auto kernelOf(CopyKind kind, Element element) {
  switch (kind) {
    case CopyKind::Float8Line: return kernelOf<CopyKind::Float8Line>(element);
    case CopyKind::Float8Square: return kernelOf<CopyKind::Float8Square>(element);
    case CopyKind::MxLine: return kernelOf<CopyKind::MxLine>(element);
    case CopyKind::MxSquare: return kernelOf<CopyKind::MxSquare>(element);
    case CopyKind::Tensor: break;
  }
  return kernelOf<CopyKind::Tensor>(element);
}

}  // namespace

void launchPermutedQuantize(std::span<const PermutedQuantization> experts, CopyKind kind, Stream stream) {
  launchInBatches(experts, [&](std::span<const PermutedQuantization> tasks,
                               const TaskBatch<PermutedQuantization>& batch) {
    launch(kernelOf(kind, tasks.front().element), tileGrid(tasks), dim3(kTilePatches, kTilePatches), 0, stream, batch);
  });
}

}  // namespace fuseline::cuda
