// NVFP4's scales, in float32 and in the order of TransformerEngine's kernels. Usable in device code: no library calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/minifloat.h"

#include <cstdint>

namespace fuseline {

namespace nvfp4 {

constexpr float kLargestFloat = 0x1.fffffep127f;
constexpr float kLargestCode = E2m1::toFloat(E2m1::kMax);
constexpr float kLargestScale = E4m3::toFloat(E4m3::kMax);

/// NaN stays.
constexpr float finite(float value) { return value > kLargestFloat ? kLargestFloat : value; }

}  // namespace nvfp4

/// Scale of a whole tensor, 448 * 6 / amax, so that the scales of blocks use E4M3's full range. 1 where amax is 0.
constexpr float nvTensorScale(float tensorAmax) {
  if (tensorAmax == 0.0f) return 1.0f;
  const float scale = nvfp4::finite(nvfp4::kLargestScale * nvfp4::kLargestCode / tensorAmax);
  return scale == 0.0f ? 1.0f : scale;
}

/// The E4M3 code of a block's scale.
constexpr std::uint8_t nvScaleCode(float blockAmax, float tensorScale) {
  const float perCode = tensorScale * (1.0f / nvfp4::kLargestCode);
  return E4m3::fromFloat(nvfp4::finite(blockAmax * perCode));
}

/// Multiplier of the elements of a block with this scale.
constexpr float nvMultiplier(std::uint8_t scaleCode, float tensorScale) {
  const float dequantFactor = E4m3::toFloat(scaleCode) * (1.0f / tensorScale);
  return dequantFactor == 0.0f ? nvfp4::kLargestFloat : nvfp4::finite(1.0f / dequantFactor);
}

/// Dequantization factor of the elements of a block with this scale.
constexpr float nvDequantFactor(std::uint8_t scaleCode, float tensorAmax) {
  return E4m3::toFloat(scaleCode) * tensorAmax * (1.0f / (nvfp4::kLargestScale * nvfp4::kLargestCode));
}

}  // namespace fuseline
