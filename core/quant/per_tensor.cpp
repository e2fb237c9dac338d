// One float32 scale a tensor: given (delayed scaling) or from the amax (current scaling).
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/scalers.h"

#include <bit>
#include <limits>

namespace fuseline {

namespace {

float scaleOf(const ScalerContext& context) {
  if (context.inputs.scale) return *context.inputs.scale;
  return scaleFromAmax(context.amax, maxFinite(context.spec.format), std::numeric_limits<float>::max(),
                       context.spec.scale);
}

BlockScaler makePerTensorScaler(const ScalerContext& context) {
  const float scale = scaleOf(context);
  return eachBlock([scale](float) { return BlockScale<float>{scale, 1.0f / scale}; });
}

float dequantPerTensorFactor(std::uint32_t stored, float) { return std::bit_cast<float>(stored); }

}  // namespace

const ScalingFamily scaling_families::perTensor = {makePerTensorScaler, dequantPerTensorFactor};

}  // namespace fuseline
