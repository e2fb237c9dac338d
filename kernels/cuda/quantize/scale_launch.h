// Launches that rearrange the scales of blocks into cuBLASLt's layout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/scale_map.h"
#include "kernels/cuda/stream/stream.h"

namespace fuseline::cuda {

/// from: one scale per block. to: memory for map.paddedOuter() * map.paddedInner() scales, or words of tiles; padding
/// becomes zero.
struct ScaleArrangement {
  const void* from = nullptr;
  void* to = nullptr;
  int scaleBytes = 4;  // 4 or 1
  ScaleMap map;
  std::int64_t rowStride = 1;  // from a block's scale to that of the block below it
  std::int64_t colStride = 1;  // to that of the block to its right
};
void launchArrangeScales(const ScaleArrangement& arrangement, Stream stream);

}  // namespace fuseline::cuda
