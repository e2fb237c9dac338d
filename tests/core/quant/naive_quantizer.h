// Quantization by the formulas, in double and one element at a time. A product, quotient or sum of two float32 values
// that is rounded from double to float32 is the float32 result: double has more than twice the bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantizer.h"
#include "tests/support/minifloat_definition.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

namespace fuseline::testing {

inline double f32(double value) { return static_cast<double>(static_cast<float>(value)); }

inline const MinifloatDefinition& definitionOf(ElementFormat format) {
  if (format == ElementFormat::E4M3) return kE4M3Definition;
  return format == ElementFormat::E5M2 ? kE5M2Definition : kE2M1Definition;
}

/// Finds the nearest code by search in the table of values; the even one of two that are as near.
class NearestByTable {
 public:
  explicit NearestByTable(const MinifloatDefinition& format) : m_format(format), m_values(format.magnitudes()) {}

  int codeOf(double value) const {
    if (std::isnan(value)) return m_format.nanCode;
    const double magnitude = std::min(std::abs(value), m_values.back());
    const auto above = static_cast<std::size_t>(std::ranges::lower_bound(m_values, magnitude) - m_values.begin());
    const std::size_t below = above == 0 ? 0 : above - 1;
    const double up = m_values[above] - magnitude;
    const double down = magnitude - m_values[below];
    const std::size_t nearest = up < down || (up == down && above % 2 == 0) ? above : below;
    return static_cast<int>(nearest) | (std::signbit(value) ? m_format.signBit() : 0);
  }

 private:
  const MinifloatDefinition& m_format;
  std::vector<double> m_values;
};

/// The smallest power of two at or above value, as a code of E8M0.
inline int e8m0Above(double value) {
  if (std::isinf(value)) return 254;
  if (value <= 0x1p-127) return 0;
  return std::min(127 + static_cast<int>(std::ceil(std::log2(value))), 254);
}

struct NaiveScale {
  double multiplier = 1.0;
  std::uint32_t stored = 0;
  double factor = 1.0;  // dequantization factor
};

inline NaiveScale fp8Scale(double amax, const QuantizerSpec& spec, double ifInfinite) {
  const double bounded = std::max(amax, static_cast<double>(spec.scale.epsilon));
  const auto& format = definitionOf(spec.format);
  NaiveScale scale;
  if (bounded != 0 && std::isfinite(bounded)) {
    scale.multiplier = f32(format.valueOf(format.maxCode) / bounded);
    if (std::isinf(scale.multiplier)) scale.multiplier = ifInfinite;
    if (spec.scale.isPowerOfTwo) scale.multiplier = std::exp2(std::floor(std::log2(scale.multiplier)));
  }
  scale.factor = f32(1.0 / scale.multiplier);
  scale.stored = std::bit_cast<std::uint32_t>(static_cast<float>(scale.factor));
  return scale;
}

inline NaiveScale mxScale(double amax, ElementFormat format) {
  const auto& definition = definitionOf(format);
  const double inverse = f32(1.0 / definition.valueOf(definition.maxCode));
  const int code = e8m0Above(f32(amax * inverse));
  return {std::ldexp(1.0, 127 - code), static_cast<std::uint32_t>(code), std::ldexp(1.0, code - 127)};
}

inline NaiveScale nvScale(double blockAmax, double tensorAmax) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  double tensorScale = std::min(f32(2688.0 / tensorAmax), kLargest);
  if (tensorAmax == 0 || tensorScale == 0) tensorScale = 1;
  const double wanted = std::min(f32(blockAmax * f32(tensorScale * f32(1.0 / 6.0))), kLargest);
  static const NearestByTable table(kE4M3Definition);
  const int code = table.codeOf(wanted);
  const double decoded = kE4M3Definition.valueOf(code);
  const double multiplier = std::min(f32(1.0 / f32(decoded * f32(1.0 / tensorScale))), kLargest);
  return {multiplier, static_cast<std::uint32_t>(code), f32(f32(decoded * tensorAmax) * f32(1.0 / 2688.0))};
}

/// A matrix of doubles, row-major.
struct DoubleMatrix {
  std::int64_t rows, cols;
  std::vector<double> values;
  double at(std::int64_t row, std::int64_t col) const { return values[static_cast<std::size_t>(row * cols + col)]; }
};

inline DoubleMatrix transposedOf(const DoubleMatrix& x) {
  DoubleMatrix result{x.cols, x.rows, {}};
  for (std::int64_t col = 0; col < x.cols; ++col)
    for (std::int64_t row = 0; row < x.rows; ++row) result.values.push_back(x.at(row, col));
  return result;
}

/// NaN does not count.
inline double amaxOfDoubles(const std::vector<double>& values) {
  double amax = 0;
  for (const double value : values)
    if (std::abs(value) > amax) amax = std::abs(value);
  return amax;
}

/// Encoded values and scales of a matrix, in blocks of blockRows x blockCols.
struct NaiveCopy {
  DoubleMatrix codes;  // one a element, unpacked
  std::map<std::pair<std::int64_t, std::int64_t>, NaiveScale> scales;
};

inline NaiveScale naiveScale(double blockAmax, double tensorAmax, const QuantizerSpec& spec, DType dtype) {
  const double largest = dtype == DType::F16 ? 65504.0 : dtype == DType::BF16 ? 0x1.fep127 : 0x1.fffffep127;
  switch (spec.scaling) {
    case Scaling::PerTensor: return fp8Scale(tensorAmax, spec, 0x1.fffffep127);
    case Scaling::Block1x128:
    case Scaling::Block128x128: return fp8Scale(blockAmax, spec, largest);
    case Scaling::Mx1x32:
    case Scaling::Mx32x32: return mxScale(blockAmax, spec.format);
    case Scaling::Nv1x16:
    case Scaling::Nv16x16: return nvScale(blockAmax, tensorAmax);
    case Scaling::NvRow1x16: break;  // held to TransformerEngine's reference by hashes
  }
  return {};
}

inline NaiveCopy naiveCopy(const DoubleMatrix& x, std::int64_t blockRows, std::int64_t blockCols,
                           const QuantizerSpec& spec, DType dtype) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<double>> blocks;
  for (std::int64_t row = 0; row < x.rows; ++row)
    for (std::int64_t col = 0; col < x.cols; ++col)
      blocks[{row / blockRows, col / blockCols}].push_back(x.at(row, col));
  NaiveCopy copy{.codes = {x.rows, x.cols, {}}, .scales = {}};
  const double amax = amaxOfDoubles(x.values);
  for (const auto& [place, values] : blocks) copy.scales[place] = naiveScale(amaxOfDoubles(values), amax, spec, dtype);
  const NearestByTable table(definitionOf(spec.format));
  for (std::int64_t row = 0; row < x.rows; ++row)
    for (std::int64_t col = 0; col < x.cols; ++col) {
      const double scaled = f32(x.at(row, col) * copy.scales[{row / blockRows, col / blockCols}].multiplier);
      copy.codes.values.push_back(table.codeOf(scaled));
    }
  return copy;
}

}  // namespace fuseline::testing
