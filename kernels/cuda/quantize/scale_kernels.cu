// Rearranges block scales from the quantizer's layout to the GEMM's: one thread per scale, including padding.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize/scale_launch.h"

#include "kernels/cuda/stream/launch.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/cuda/device/program.h"

namespace fuseline::cuda {

namespace {

using namespace device;

template <class Scale>
__device__ Scale arranged(Scale scale, ScaleOrder order) {
  return order == ScaleOrder::TileWords ? static_cast<Scale>(mxScalesOf(std::bit_cast<float>(std::uint32_t{scale})))
                                        : scale;
}

constexpr int kLinesAtOnce = kBlockThreads / kWarpLanes;

/// A warp walks along scales that are adjacent in the output.
struct ScaleWalk {
  bool isAlongRows = false;
  std::int64_t length = 0;  // of a line
  std::int64_t lines = 0;
};

constexpr ScaleWalk walkOf(const ScaleMap& map) {
  const bool isAlongRows = map.order == ScaleOrder::Columns;
  return {.isAlongRows = isAlongRows,
          .length = isAlongRows ? map.paddedOuter() : map.paddedInner(),
          .lines = isAlongRows ? map.paddedInner() : map.paddedOuter()};
}

/// Index among the scales as the quantizer left them.
__device__ std::int64_t storedIndex(const ScaleArrangement& task, std::int64_t row, std::int64_t block) {
  const std::int64_t shared = row / task.map.repeat;
  return task.map.isOnEnd ? block * task.rowStride + shared * task.colStride
                          : shared * task.rowStride + block * task.colStride;
}

template <class Scale>
__device__ void arrangeScale(const ScaleArrangement& task, std::int64_t row, std::int64_t block) {
  const ScaleMap& map = task.map;
  const bool isPadding = row >= map.outer || block >= map.inner;
  static_cast<Scale*>(task.to)[map.gemm(row, block)] =
      isPadding ? Scale{0} : arranged(static_cast<const Scale*>(task.from)[storedIndex(task, row, block)], map.order);
}

/// blockDim: (kWarpLanes, kLinesAtOnce)
template <class Scale>
__global__ void __launch_bounds__(kBlockThreads) arrangeScales(const __grid_constant__ ScaleArrangement task) {
  const ScaleWalk walk = walkOf(task.map);
#pragma unroll 1
  for (std::int64_t line = blockIdx.y * kLinesAtOnce + threadIdx.y; line < walk.lines; line += gridDim.y * kLinesAtOnce)
#pragma unroll 1
    for (std::int64_t i = blockIdx.x * kWarpLanes + threadIdx.x; i < walk.length; i += gridDim.x * kWarpLanes)
      arrangeScale<Scale>(task, walk.isAlongRows ? i : line, walk.isAlongRows ? line : i);
}

unsigned gridExtent(std::int64_t extent, int perBlock) {
  constexpr std::int64_t kMaxBlocks = 65535;
  return static_cast<unsigned>(std::min((extent + perBlock - 1) / perBlock, kMaxBlocks));
}

}  // namespace

void launchArrangeScales(const ScaleArrangement& arrangement, Stream stream) {
  const ScaleWalk walk = walkOf(arrangement.map);
  if (walk.length * walk.lines == 0) return;
  const auto kernel = arrangement.scaleBytes == 4 ? arrangeScales<std::uint32_t> : arrangeScales<std::uint8_t>;
  launch(kernel, dim3(gridExtent(walk.length, kWarpLanes), gridExtent(walk.lines, kLinesAtOnce)),
         dim3(kWarpLanes, kLinesAtOnce), 0, stream, arrangement);
}

}  // namespace fuseline::cuda
