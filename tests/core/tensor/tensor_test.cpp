// Encoding of tensors: one rounding, independent of the conversion path.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include "core/numerics/bf16.h"
#include "core/numerics/f16.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

std::uint16_t encodedBits(double value, DType dtype) {
  std::uint16_t bits = 0;
  encode(std::array{value}, dtype, reinterpret_cast<std::byte*>(&bits));
  return bits;
}

// Rounding to f32 first would make these values ties, and the tie would go to the even neighbor below.
TEST(TensorEncoding, DoesNotRoundTwice) {
  EXPECT_EQ(encodedBits(1.0 + 0x1p-8 + 0x1p-40, DType::BF16), 0x3f81);
  EXPECT_EQ(encodedBits(1.0 + 0x1p-11 + 0x1p-40, DType::F16), 0x3c01);
  EXPECT_EQ(encodedBits(1.0 + 0x1p-8 - 0x1p-40, DType::BF16), 0x3f80);
  EXPECT_EQ(encodedBits(1.0 + 3 * 0x1p-8 - 0x1p-40, DType::BF16), 0x3f81);
  EXPECT_EQ(encodedBits(-(1.0 + 0x1p-8 + 0x1p-40), DType::BF16), 0xbf81);
}

TEST(TensorEncoding, RoundsExactTiesToEven) {
  EXPECT_EQ(encodedBits(1.0 + 0x1p-8, DType::BF16), 0x3f80);
  EXPECT_EQ(encodedBits(1.0 + 3 * 0x1p-8, DType::BF16), 0x3f82);
  EXPECT_EQ(encodedBits(1.0 + 0x1p-11, DType::F16), 0x3c00);
}

TEST(TensorEncoding, KeepsSpecialValues) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(encodedBits(kInfinity, DType::BF16), 0x7f80);
  EXPECT_EQ(encodedBits(-kInfinity, DType::F16), 0xfc00);
  EXPECT_EQ(encodedBits(1e300, DType::BF16), 0x7f80);
  EXPECT_EQ(encodedBits(65519.999, DType::F16), 0x7bff);
  EXPECT_EQ(encodedBits(65520.0, DType::F16), 0x7c00);
  EXPECT_EQ(encodedBits(-1e-300, DType::BF16), 0x8000);
  EXPECT_TRUE(std::isnan(bf16ToFloat(encodedBits(std::nan(""), DType::BF16))));
  EXPECT_TRUE(std::isnan(f16ToFloat(encodedBits(std::nan(""), DType::F16))));
}

TEST(TensorEncoding, KeepsIntegersAndRoundsToThem) {
  const TensorSpec spec{.dtype = DType::I64, .shape = {6}};
  EXPECT_EQ(spec.bytes(), 48);
  const std::vector<double> exact = {0, 1, -1, 0x1p53, -0x1p53, -0x1p63};
  EXPECT_EQ(Tensor::fromDoubles(spec, exact).toDoubles(), exact);
  EXPECT_EQ(Tensor::fromDoubles(spec, std::array{0.5, 1.5, -2.5, 2.6, std::nan(""), -1e300}).toDoubles(),
            (std::vector<double>{0, 2, -2, 3, 0, -0x1p63}));
  std::int64_t largest = 0;
  encode(std::array{1e300}, DType::I64, reinterpret_cast<std::byte*>(&largest));
  EXPECT_EQ(largest, std::numeric_limits<std::int64_t>::max());
}

TEST(TensorSpec, CountsRowsOfScalarsVectorsAndEmptyTensors) {
  EXPECT_EQ((TensorSpec{.shape = {}}.rows()), 1);
  EXPECT_EQ((TensorSpec{.shape = {}}.numElements()), 1);
  EXPECT_EQ((TensorSpec{.shape = {7}}.rows()), 1);
  EXPECT_EQ((TensorSpec{.shape = {0, 7}}.rows()), 0);
  EXPECT_EQ((TensorSpec{.shape = {3, 0}}.rows()), 3);
  EXPECT_EQ((TensorSpec{.shape = {2, 3, 7}}.rows()), 6);
}

TEST(DType, ParsesShortAndLongNames) {
  EXPECT_EQ(parseDType("bf16"), DType::BF16);
  EXPECT_EQ(parseDType("bfloat16"), DType::BF16);
  EXPECT_EQ(parseDType("float32"), DType::F32);
  EXPECT_EQ(parseDType("f16"), DType::F16);
  EXPECT_EQ(parseDType("i64"), DType::I64);
  EXPECT_EQ(parseDType("int64"), DType::I64);
  EXPECT_EQ(parseDType("f64"), std::nullopt);
  EXPECT_EQ(parseDType("u8"), std::nullopt);  // no op computes with bytes
}

TEST(Tensor, BytesAreRoundedAndSaturated) {
  const std::vector<double> values = {0, 254.4, 255, -3, 1e9, std::nan("")};
  const Tensor tensor = Tensor::fromDoubles({DType::U8, {6}}, values);
  EXPECT_EQ(tensor.data.size(), 6u);
  EXPECT_EQ(tensor.toDoubles(), (std::vector<double>{0, 254, 255, 0, 255, 0}));
}

}  // namespace
}  // namespace fuseline
