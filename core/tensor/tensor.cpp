// Element types, shapes and host tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include "core/numerics/bf16.h"
#include "core/numerics/f16.h"
#include "core/numerics/minifloat.h"
#include "core/numerics/round_to_odd.h"
#include "core/tensor/grouped_copy.h"
#include "core/tensor/scaling.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

struct DTypeNames {
  DType dtype;
  std::string_view shortName;
  std::string_view longName;  // empty: not to compute in
};

constexpr std::array kDTypes = {
    DTypeNames{DType::F32, "f32", "float32"},    DTypeNames{DType::F16, "f16", "float16"},
    DTypeNames{DType::BF16, "bf16", "bfloat16"}, DTypeNames{DType::I64, "i64", "int64"},
    DTypeNames{DType::E4M3, "e4m3", ""},         DTypeNames{DType::U8, "u8", ""},
};

/// Rounds to nearest even; NaN gives 0, and values beyond 64 bits give their limit.
std::int64_t roundedToInteger(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return std::llrint(value);
}

/// Saturates; NaN becomes 0.
std::uint8_t nearestByte(double value) {
  return static_cast<std::uint8_t>(std::nearbyint(std::clamp(std::isnan(value) ? 0.0 : value, 0.0, 255.0)));
}

template <class Bits, class Encode>
void encodeWith(std::span<const double> values, std::byte* out, Encode encodeOne) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Bits bits = encodeOne(values[i]);
    std::memcpy(out + i * sizeof(Bits), &bits, sizeof(Bits));
  }
}

template <class Bits, class Decode>
void decodeWith(const std::byte* in, std::span<double> values, Decode decodeOne) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, in + i * sizeof(Bits), sizeof(Bits));
    values[i] = static_cast<double>(decodeOne(bits));
  }
}

}  // namespace

std::string_view dtypeName(DType dtype) {
  for (const DTypeNames& names : kDTypes)
    if (names.dtype == dtype) return names.shortName;
  return "?";
}

std::optional<DType> parseDType(std::string_view name) {
  for (const DTypeNames& names : kDTypes)
    if (!names.longName.empty() && (name == names.shortName || name == names.longName)) return names.dtype;
  return std::nullopt;
}

std::int64_t numElements(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::int64_t TensorSpec::bytes() const {
  if (!quantized) return numElements() * sizeBytes(dtype);
  return quantized->numGroups > 0 ? groupedCopyBytes(*this) : partsOf(*this).totalBytes;
}

std::int64_t TensorSpec::rows() const {
  std::int64_t product = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) product *= shape[i];
  return product;
}

std::string toString(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string toString(const TensorSpec& spec) {
  const std::string plain = fmt::format("{} {}", toString(spec.shape), dtypeName(spec.dtype));
  if (!spec.quantized) return plain;
  const std::int64_t groups = spec.quantized->numGroups;
  return fmt::format("{} as {} ({}, {}{})", plain, formatName(spec.quantized->format),
                     traitsOf(spec.quantized->scaling).name, directionName(spec.quantized->direction),
                     groups > 0 ? fmt::format(", {} groups", groups) : "");
}

void encode(std::span<const double> values, DType dtype, std::byte* out) {
  switch (dtype) {
    case DType::F32: return encodeWith<float>(values, out, [](double v) { return static_cast<float>(v); });
    case DType::F16:
      return encodeWith<std::uint16_t>(values, out, [](double v) { return floatToF16(roundedToOdd(v)); });
    case DType::BF16:
      return encodeWith<std::uint16_t>(values, out, [](double v) { return floatToBf16(roundedToOdd(v)); });
    case DType::E4M3:
      return encodeWith<std::uint8_t>(values, out, [](double v) { return E4m3::fromFloat(roundedToOdd(v)); });
    case DType::I64: return encodeWith<std::int64_t>(values, out, roundedToInteger);
    case DType::U8: return encodeWith<std::uint8_t>(values, out, nearestByte);
  }
}

void decode(const std::byte* in, DType dtype, std::span<double> values) {
  switch (dtype) {
    case DType::F32: return decodeWith<float>(in, values, [](float v) { return v; });
    case DType::F16: return decodeWith<std::uint16_t>(in, values, f16ToFloat);
    case DType::BF16: return decodeWith<std::uint16_t>(in, values, bf16ToFloat);
    case DType::E4M3: return decodeWith<std::uint8_t>(in, values, E4m3::toFloat);
    case DType::I64: return decodeWith<std::int64_t>(in, values, [](std::int64_t v) { return v; });
    case DType::U8: return decodeWith<std::uint8_t>(in, values, [](std::uint8_t v) { return v; });
  }
}

Tensor Tensor::zeros(TensorSpec spec) {
  const auto size = static_cast<std::size_t>(spec.bytes());
  return {.spec = std::move(spec), .data = std::vector<std::byte>(size)};
}

Tensor Tensor::fromDoubles(TensorSpec spec, std::span<const double> values) {
  Tensor tensor = zeros(std::move(spec));
  encode(values, tensor.spec.dtype, tensor.data.data());
  return tensor;
}

std::vector<double> Tensor::toDoubles() const {
  std::vector<double> values(static_cast<std::size_t>(spec.numElements()));
  decode(data.data(), spec.dtype, values);
  return values;
}

}  // namespace fuseline
