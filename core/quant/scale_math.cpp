// Every line is one or two float32 operations; their order is part of the result.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/scale_math.h"

#include "core/numerics/bf16.h"
#include "core/numerics/f16.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace fuseline {

namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

/// Drops the mantissa, which rounds toward zero.
float powerOfTwoBelow(float value) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xff800000u); }

bool isUsable(float amax) { return std::isfinite(amax) && amax > 0.0f; }

}  // namespace

float amaxOf(std::span<const float> values) {
  float amax = 0.0f;
  for (const float value : values) amax = std::fmax(std::fabs(value), amax);
  return amax;
}

float largestFinite(DType dtype) {
  if (dtype == DType::F16) return f16ToFloat(0x7bff);
  return dtype == DType::BF16 ? bf16ToFloat(0x7f7f) : kLargest;
}

float scaleFromAmax(float amax, float maxFinite, float ifInfinite, ScaleOptions options) {
  const float bounded = amax < options.epsilon ? options.epsilon : amax;
  if (!isUsable(bounded)) return 1.0f;
  const float quotient = maxFinite / bounded;
  const float scale = std::isinf(quotient) ? ifInfinite : quotient;
  return options.isPowerOfTwo ? powerOfTwoBelow(scale) : scale;
}

float delayedScale(float amax, float previous, float maxFinite, int margin) {
  if (!isUsable(amax)) return previous;
  const float scale = maxFinite * std::ldexp(1.0f, -margin) / amax;
  return std::isinf(scale) ? kLargest : scale;
}

float mxInverseOfMax(ElementFormat format) { return 1.0f / maxFinite(format); }

}  // namespace fuseline
