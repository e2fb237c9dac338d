// Blocks of 1x128 and 128x128 elements with float32 scales, as Hopper's GEMMs take them.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/scalers.h"

#include <bit>

namespace fuseline {

namespace {

BlockScaler makeFp8BlockScaler(const ScalerContext& context) {
  const float formatMax = maxFinite(context.spec.format);
  const float ifInfinite = largestFinite(context.dtype);
  return eachBlock([formatMax, ifInfinite, options = context.spec.scale](float blockAmax) {
    const float scale = scaleFromAmax(blockAmax, formatMax, ifInfinite, options);
    return BlockScale<float>{scale, 1.0f / scale};
  });
}

float dequantFp8BlockFactor(std::uint32_t stored, float) { return std::bit_cast<float>(stored); }

}  // namespace

const ScalingFamily scaling_families::fp8Block = {makeFp8BlockScaler, dequantFp8BlockFactor};

}  // namespace fuseline
