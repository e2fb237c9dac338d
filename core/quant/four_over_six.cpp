// Every line is one or two float32 operations; their order is part of the result.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/four_over_six.h"

#include "core/numerics/minifloat.h"
#include "core/numerics/nvfp4.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fuseline {

namespace {

constexpr std::int64_t kBlockRows = 16;
constexpr float kMapToFour = 1.5F;  // 6 / 4

float tensorScaleOf(float amax, float scaleMax) {
  if (amax == 0.0F) return 1.0F;
  const float scale = nvfp4::finite(scaleMax * nvfp4::kLargestCode / amax);
  return scale == 0.0F ? 1.0F : scale;
}

float blockAmaxOf(std::span<const float> block) {
  float amax = 0.0F;
  for (const float value : block) amax = std::fmax(std::fabs(value), amax);
  return amax;
}

}  // namespace

FourOverSixScaler::FourOverSixScaler(FourOverSix options, float amax)
    : m_options(options), m_amax(amax), m_tensorScale(tensorScaleOf(amax, static_cast<float>(options.scaleMax))) {}

BlockScale<std::uint8_t> FourOverSixScaler::scaleOf(std::span<const float> block, std::int64_t rows) const {
  const float base = blockAmaxOf(block) / nvfp4::kLargestCode * m_tensorScale;
  const BlockScale<std::uint8_t> four = candidate(base * kMapToFour);
  const BlockScale<std::uint8_t> six = candidate(base);
  return errorOf(four, block, rows) < errorOf(six, block, rows) ? four : six;
}

float FourOverSixScaler::storedAmax() const {
  return m_amax * (nvfp4::kLargestScale / static_cast<float>(m_options.scaleMax));
}

BlockScale<std::uint8_t> FourOverSixScaler::candidate(float wanted) const {
  const std::uint8_t code = E4m3::fromFloat(std::fmin(wanted, nvfp4::kLargestScale));
  const float dequantFactor = E4m3::toFloat(code) * (1.0F / m_tensorScale);
  return {dequantFactor == 0.0F ? nvfp4::kLargestFloat : nvfp4::finite(1.0F / dequantFactor), code};
}

/// Rows are summed in pairs at a distance of eight, four, two rows and one, like the threads of a warp do.
float FourOverSixScaler::errorOf(const BlockScale<std::uint8_t>& scale, std::span<const float> block,
                                 std::int64_t rows) const {
  std::array<float, kBlockRows> errors{};
  const float factor = E4m3::toFloat(scale.stored);
  const std::size_t cols = block.size() / static_cast<std::size_t>(std::max<std::int64_t>(rows, 1));
  for (std::size_t i = 0; i < block.size(); ++i) errors[i / cols] += lossOf(block[i], factor, scale.multiplier);
  for (std::size_t half = kBlockRows / 2; half > 0; half /= 2)
    for (std::size_t row = 0; row < half; ++row) errors[row] += errors[row + half];
  return errors.front();
}

float FourOverSixScaler::lossOf(float value, float scale, float multiplier) const {
  const float code = E2m1::toFloat(E2m1::fromFloat(value * multiplier));
  const float read = code * scale * m_amax / (nvfp4::kLargestCode * static_cast<float>(m_options.scaleMax));
  const float difference = read - value;
  return m_options.isBySquares ? difference * difference : std::fabs(difference);
}

}  // namespace fuseline
