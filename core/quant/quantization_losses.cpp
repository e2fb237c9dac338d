// Compares a tensor with its dequantized values.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/quantization_losses.h"

#include "core/numerics/e8m0.h"
#include "core/quant/copy_memory.h"
#include "core/quant/scalers.h"
#include "core/tensor/grouped_copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace fuseline {

namespace {

void appendFactors(const QuantizedCopy& copy, Scaling scaling, std::vector<double>& factors) {
  const std::size_t width = traitsOf(scaling).scaleFormat == ScaleFormat::F32 ? 4 : 1;
  for (std::size_t at = 0; at + width <= copy.scaleInv.data.size(); at += width) {
    std::uint32_t stored = 0;
    std::memcpy(&stored, copy.scaleInv.data.data() + at, width);
    const auto row = static_cast<std::int64_t>(at / width) / copy.scaleInv.spec.cols();
    factors.push_back(static_cast<double>(familyOf(scaling).dequantFactor(stored, copy.amaxOf(row))));
  }
}

/// The factor of every block.
std::vector<double> factorsOf(const TensorSpec& copy, const std::byte* memory) {
  std::vector<double> factors;
  for (const GroupCopy& group : groupCopies(copy, memory))
    appendFactors(*fromMemory(group.spec, memory + group.offset).copy(copy.quantized->direction),
                  copy.quantized->scaling, factors);
  return factors;
}

/// The values with scales of 1: one group's encoded values alone.
std::vector<double> groupCodeValues(const TensorSpec& copy, const std::byte* memory) {
  const CopyParts parts = partsOf(copy);
  std::vector<std::byte> plain(memory, memory + parts.totalBytes);
  const float one = 1.0F;
  std::byte* const scales = plain.data() + parts.scalesOffset;
  switch (traitsOf(copy.quantized->scaling).scaleFormat) {
    case ScaleFormat::F32:
      for (std::int64_t at = 0; at < parts.scalesBytes; at += 4) std::memcpy(scales + at, &one, sizeof(one));
      break;
    case ScaleFormat::E8M0: std::fill_n(scales, parts.scalesBytes, std::byte{127}); break;
    case ScaleFormat::E4M3: {
      std::fill_n(scales, parts.scalesBytes, static_cast<std::byte>(E4m3::fromFloat(1.0F)));
      const float amax = maxFinite(ElementFormat::E4M3) * maxFinite(ElementFormat::E2M1);
      for (std::int64_t i = 0; i < parts.numAmaxes; ++i)
        std::memcpy(plain.data() + parts.amaxOffset + 4 * i, &amax, sizeof(amax));
      break;
    }
  }
  return dequantizedValues(copy, plain.data());
}

std::vector<double> codeValues(const TensorSpec& copy, const std::byte* memory) {
  std::vector<double> values;
  for (const GroupCopy& group : groupCopies(copy, memory)) {
    const std::vector<double> part = groupCodeValues(group.spec, memory + group.offset);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

void measureTensor(const std::vector<double>& x, QuantizationLosses& losses) {
  losses.smallest = std::numeric_limits<double>::infinity();
  for (const double value : x) {
    const double magnitude = std::abs(value);
    if (!std::isfinite(value) || magnitude == 0.0) continue;
    losses.amax = std::max(losses.amax, magnitude);
    losses.smallest = std::min(losses.smallest, magnitude);
  }
  if (losses.amax == 0.0) losses.smallest = 0.0;
}

void measureErrors(const std::vector<double>& x, const std::vector<double>& numbers, QuantizationLosses& losses) {
  double signal = 0.0;
  double noise = 0.0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(numbers[i])) continue;
    signal += x[i] * x[i];
    noise += (numbers[i] - x[i]) * (numbers[i] - x[i]);
    ++count;
  }
  if (count == 0) return;
  losses.meanSquaredError = noise / static_cast<double>(count);
  losses.signalToNoise = noise == 0.0 ? std::numeric_limits<double>::infinity() : 10.0 * std::log10(signal / noise);
}

void measureShares(const std::vector<double>& x, const std::vector<double>& numbers, const std::vector<double>& codes,
                   double largest, QuantizationLosses& losses) {
  std::size_t nonZero = 0;
  std::size_t lost = 0;
  std::size_t saturated = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] != 0.0) ++nonZero;
    if (x[i] != 0.0 && codes[i] == 0.0) ++lost;
    if (std::abs(codes[i]) == largest && std::abs(x[i]) > std::abs(numbers[i]) * (1.0 + 1e-6)) ++saturated;
  }
  if (nonZero > 0) losses.underflowShare = static_cast<double>(lost) / static_cast<double>(nonZero);
  if (!x.empty()) losses.saturationShare = static_cast<double>(saturated) / static_cast<double>(x.size());
}

}  // namespace

double QuantizationLosses::dynamicRange() const { return smallest > 0.0 ? std::log2(amax / smallest) : 0.0; }

QuantizationLosses lossesOf(const Tensor& x, const TensorSpec& copy, const std::byte* memory) {
  QuantizationLosses losses;
  const std::vector<double> values = x.toDoubles();
  const std::vector<double> numbers = dequantizedValues(copy, memory);
  measureTensor(values, losses);
  measureErrors(values, numbers, losses);
  const QuantizedForm& form = *copy.quantized;
  const std::vector<double> factors = factorsOf(copy, memory);
  if (!factors.empty()) {
    const auto [smallest, largest] = std::ranges::minmax_element(factors);
    losses.scaleInvMin = *smallest;
    losses.scaleInvMax = *largest;
  }
  if (!form.isTransformed)
    measureShares(values, numbers, codeValues(copy, memory), static_cast<double>(maxFinite(form.format)), losses);
  return losses;
}

}  // namespace fuseline
