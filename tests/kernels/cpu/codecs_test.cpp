// The vectorized codecs against core/numerics, bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/bf16.h"
#include "core/numerics/f16.h"
#include "kernels/cpu/elementwise/strip_functions.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::cpu {
namespace {

float decodeOne(DType dtype, std::uint16_t bits) { return dtype == DType::BF16 ? bf16ToFloat(bits) : f16ToFloat(bits); }

std::uint16_t encodeOne(DType dtype, float value) {
  return dtype == DType::BF16 ? floatToBf16(value) : floatToF16(value);
}

bool sameFloat(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

/// Every 16-bit number exactly, the ties between neighbors and their surroundings, and random bits.
std::vector<float> interestingFloats(DType dtype) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = decodeOne(dtype, static_cast<std::uint16_t>(bits));
    const auto wide = std::bit_cast<std::uint32_t>(value);
    for (const std::uint32_t offset : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u})
      values.push_back(std::bit_cast<float>(wide + offset));
  }
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return values;
}

class HalfCodecs : public ::testing::TestWithParam<DType> {};

TEST_P(HalfCodecs, DecodeEveryPattern) {
  std::vector<std::uint16_t> bits(0x10000);
  std::iota(bits.begin(), bits.end(), std::uint16_t{0});
  std::vector<float> decoded(bits.size());
  decodeFunction(GetParam())(decoded.data(), bits.data(), nullptr, bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i)
    ASSERT_TRUE(sameFloat(decoded[i], decodeOne(GetParam(), bits[i]))) << "pattern " << bits[i];
}

TEST_P(HalfCodecs, EncodeLikeTheScalarCodec) {
  const std::vector<float> values = interestingFloats(GetParam());
  std::vector<std::uint16_t> encoded(values.size());
  encodeFunction(GetParam())(encoded.data(), values.data(), nullptr, values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(encoded[i], encodeOne(GetParam(), values[i]))
        << "of " << std::hexfloat << values[i] << ", bits " << std::bit_cast<std::uint32_t>(values[i]);
}

TEST_P(HalfCodecs, TouchNothingBeyondAnyLength) {
  const std::vector<float> values(70, 1.5F);
  for (std::size_t length = 0; length < 70; ++length) {
    std::vector<std::uint16_t> encoded(72, 0xabcd);
    encodeFunction(GetParam())(encoded.data(), values.data(), nullptr, length);
    for (std::size_t i = 0; i < encoded.size(); ++i)
      ASSERT_EQ(encoded[i], i < length ? encodeOne(GetParam(), 1.5F) : 0xabcd) << i << " of " << length;
  }
}

INSTANTIATE_TEST_SUITE_P(HalfFormats, HalfCodecs, ::testing::Values(DType::BF16, DType::F16),
                         [](const auto& test) { return std::string(dtypeName(test.param)); });

}  // namespace
}  // namespace fuseline::cpu
