// Looks values up and moves them by the exponent of their block.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/mxfp4_weights.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::array kE2M1 = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                              -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};
constexpr int kExponentBias = 127;
constexpr int kNan = 255;  // of E8M0
constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kBytes = kBlock / 2;

/// Exact: a value has two significant bits.
std::uint16_t bf16Bits(float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); }

bool fit(const Tensor& blocks, const Tensor& scales) {
  if (blocks.spec.dtype != DType::U8 || scales.spec.dtype != DType::U8 || blocks.spec.shape.empty()) return false;
  Shape shape = scales.spec.shape;
  shape.push_back(kBytes);
  return blocks.spec.shape == shape && !scales.spec.shape.empty();
}

}  // namespace

Result<Tensor> decodedMxfp4(const std::string& name, const Tensor& blocks, const Tensor& scales) {
  if (!fit(blocks, scales))
    return Error{
        fmt::format("tensors {0}_blocks and {0}_scales are {1} {2} and {3} {4}; expected u8, 16 bytes a scale.", name,
                    dtypeName(blocks.spec.dtype), toString(blocks.spec.shape), dtypeName(scales.spec.dtype),
                    toString(scales.spec.shape))};
  TensorSpec spec{.dtype = DType::BF16, .shape = scales.spec.shape};
  spec.shape.back() *= kBlock;
  Tensor decoded = Tensor::zeros(spec);
  std::byte* to = decoded.data.data();
  for (std::size_t block = 0; block < scales.data.size(); ++block) {
    const int exponent = std::to_integer<int>(scales.data[block]);
    std::array<std::uint16_t, kE2M1.size()> bits{};
    for (std::size_t code = 0; code < bits.size(); ++code)
      bits[code] = bf16Bits(exponent == kNan ? NAN : std::ldexp(kE2M1[code], exponent - kExponentBias));
    for (std::size_t i = 0; i < static_cast<std::size_t>(kBytes); ++i) {
      const int pair = std::to_integer<int>(blocks.data[block * kBytes + i]);
      for (const int code : {pair & 15, pair >> 4}) {
        std::memcpy(to, &bits[static_cast<std::size_t>(code)], sizeof(std::uint16_t));
        to += sizeof(std::uint16_t);
      }
    }
  }
  return decoded;
}

}  // namespace fuseline
