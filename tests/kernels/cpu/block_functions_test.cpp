// Vectorized loops over blocks against plain ones.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantize/block_functions.h"
#include "core/tensor/tensor.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fuseline::cpu {
namespace {

/// Any bits at all: infinities, NaN and subnormals among them.
std::vector<float> anyFloats(const std::vector<std::uint32_t>& bits) {
  std::vector<float> values;
  for (const std::uint32_t one : bits) values.push_back(std::bit_cast<float>(one));
  return values;
}

double largestMagnitude(const std::vector<double>& values) {
  double amax = 0.0;
  for (const double value : values)
    if (std::abs(value) > amax) amax = std::abs(value);
  return amax;
}

RC_GTEST_PROP(BlockFunctions, FindTheLargestMagnitude, ()) {
  const DType dtype = *rc::gen::element(DType::F32, DType::F16, DType::BF16);
  const auto size = static_cast<std::size_t>(sizeBytes(dtype));
  const auto bytes = *rc::gen::container<std::vector<std::uint8_t>>(
      size * static_cast<std::size_t>(*rc::gen::inRange(0, 300)), rc::gen::arbitrary<std::uint8_t>());
  std::vector<double> values(bytes.size() / size);
  decode(reinterpret_cast<const std::byte*>(bytes.data()), dtype, values);
  RC_ASSERT(static_cast<double>(amaxFunction(dtype)(bytes.data(), values.size())) == largestMagnitude(values));
}

TEST(BlockFunctions, IgnoreNanAndKeepInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    const auto amaxOf = [&](const std::vector<double>& values) {
      const Tensor tensor = Tensor::fromDoubles({dtype, {static_cast<std::int64_t>(values.size())}}, values);
      return amaxFunction(dtype)(tensor.data.data(), values.size());
    };
    EXPECT_EQ(amaxOf({1.0, nan, -2.0}), 2.0F);
    EXPECT_EQ(amaxOf({nan}), 0.0F);
    EXPECT_EQ(amaxOf({nan, -infinity}), infinity);
    EXPECT_EQ(amaxOf({}), 0.0F);
  }
}

RC_GTEST_PROP(BlockFunctions, RaiseAmaxesColumnByColumn, (const std::vector<std::uint32_t>& bits)) {
  const std::vector<float> values = anyFloats(bits);
  std::vector<float> amaxes(values.size(), 1.0F);
  raiseFunction(DType::F32)(amaxes.data(), values.data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    RC_ASSERT(amaxes[i] == (std::abs(values[i]) > 1.0F ? std::abs(values[i]) : 1.0F));
}

RC_GTEST_PROP(BlockFunctions, MultiplyLikeAPlainLoop, (const std::vector<std::uint32_t>& bits, float factor)) {
  const std::vector<float> values = anyFloats(bits);
  std::vector<float> byOne = values;
  blockFunctions().scale(byOne.data(), factor, byOne.size());
  const auto areSame = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (std::size_t i = 0; i < values.size(); ++i) RC_ASSERT(areSame(byOne[i], values[i] * factor));
}

/// outStride: of whole lines, which are written past the cache if the memory is aligned, or not.
void expectTransposed(std::size_t outStride) {
  constexpr std::size_t kInStride = kTransposedSide + 7;
  std::vector<std::uint8_t> in(kTransposedSide * kInStride);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(i * 131 + i / 251);
  std::vector<std::uint8_t> memory((kTransposedSide + 1) * outStride + kTransposedSide, 0xaa);
  auto* const out = memory.data() + kTransposedSide - reinterpret_cast<std::uintptr_t>(memory.data()) % kTransposedSide;
  blockFunctions().transposeSquare(in.data(), kInStride, out, outStride);
  for (std::size_t row = 0; row < kTransposedSide; ++row) {
    for (std::size_t col = 0; col < kTransposedSide; ++col)
      ASSERT_EQ(out[col * outStride + row], in[row * kInStride + col]) << row << ", " << col;
    for (std::size_t gap = kTransposedSide; gap < outStride; ++gap) ASSERT_EQ(out[row * outStride + gap], 0xaa);
  }
}

TEST(BlockFunctions, TransposeASquare) {
  expectTransposed(kTransposedSide + 3);
  expectTransposed(kTransposedSide * 2);
}

}  // namespace
}  // namespace fuseline::cpu
