// Scales of blocks on their way from quantizer to product: a thread a scale, padding included.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/scale_launch.h"

#include "kernels/cuda/launch.h"

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

template <class Scale>
__global__ void __launch_bounds__(kBlockThreads) arrangeScales(const __grid_constant__ ScaleArrangement task) {
  const ScaleMap& map = task.map;
  const std::int64_t inner = map.paddedInner();
  const std::int64_t scales = map.paddedOuter() * inner;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < scales; i += stride) {
    const std::int64_t row = i / inner;
    const std::int64_t block = i % inner;
    const bool isPadding = row >= map.outer || block >= map.inner;
    static_cast<Scale*>(task.to)[map.gemm(row, block)] =
        isPadding ? Scale{0} : arranged(static_cast<const Scale*>(task.from)[map.compact(row, block)], map.order);
  }
}

}  // namespace

void launchArrangeScales(const ScaleArrangement& arrangement, Stream stream) {
  constexpr std::int64_t kMaxBlocks = 65535;
  const std::int64_t scales = arrangement.map.paddedOuter() * arrangement.map.paddedInner();
  if (scales == 0) return;
  const std::int64_t blocks = std::min((scales + kBlockThreads - 1) / kBlockThreads, kMaxBlocks);
  const auto kernel = arrangement.scaleBytes == 4 ? arrangeScales<std::uint32_t> : arrangeScales<std::uint8_t>;
  launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(kBlockThreads), 0, stream, arrangement);
}

}  // namespace fuseline::cuda
