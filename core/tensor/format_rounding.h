// Rounds numbers to a quantized format and back, as FP8 attention rounds the probabilities that it multiplies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/element_format.h"

#include <cmath>
#include <span>

namespace fuseline {

/// Scale for an amax, which becomes the largest value of the format; 1 where there is none. No probability exceeds 1:
/// they have the scale of that amax.
inline float roundingScale(ElementFormat format, float amax) {
  const float scale = maxFinite(format) / amax;
  return std::isfinite(scale) && scale > 0.0F ? scale : 1.0F;
}

/// The value that multiplies: encoded with this scale, and decoded again.
inline float roundedWithScale(ElementFormat format, float value, float scale) {
  return visitFormat(format, [&](auto encoding) {
    using Encoding = decltype(encoding);
    return Encoding::toFloat(Encoding::fromFloat(value * scale)) * (1.0F / scale);
  });
}

inline void roundWithScale(ElementFormat format, float scale, std::span<float> values) {
  const float inverse = 1.0F / scale;
  visitFormat(format, [&](auto encoding) {
    using Encoding = decltype(encoding);
    for (float& value : values) value = Encoding::toFloat(Encoding::fromFloat(value * scale)) * inverse;
  });
}

}  // namespace fuseline
