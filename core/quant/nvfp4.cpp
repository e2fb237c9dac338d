// NVFP4: blocks of 16 elements (or 16x16) with an E4M3 scale each, and a float32 scale of the tensor.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/scalers.h"

namespace fuseline {

namespace {

BlockScaler makeNvfp4Scaler(const ScalerContext& context) {
  const float tensorScale = nvTensorScale(context.amax);
  return eachBlock([tensorScale](float blockAmax) {
    const std::uint8_t code = nvScaleCode(blockAmax, tensorScale);
    return BlockScale<std::uint8_t>{nvMultiplier(code, tensorScale), code};
  });
}

float dequantNvfp4Factor(std::uint32_t stored, float amax) {
  return nvDequantFactor(static_cast<std::uint8_t>(stored), amax);
}

}  // namespace

const ScalingFamily scaling_families::nvfp4 = {makeNvfp4Scaler, dequantNvfp4Factor};

}  // namespace fuseline
