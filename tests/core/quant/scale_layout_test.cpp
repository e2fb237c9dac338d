// Scale layouts: positions by the definition of a tile, sizes by cuBLASLt's formulas, and the way there and back.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/scale_layout.h"

#include "core/quant/quantizer.h"

#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

constexpr Scaling kLaidOutScalings[] = {Scaling::PerTensor, Scaling::Block1x128, Scaling::Block128x128, Scaling::Mx1x32,
                                        Scaling::Mx32x32,   Scaling::Nv1x16,     Scaling::Nv16x16};

std::int64_t padded(std::int64_t count, std::int64_t multiple) {
  while (count % multiple != 0) ++count;
  return count;
}

// Row 33 is row 1 of the second column of 32 rows in its tile, block 5 is block 1 of the second tile of 512 bytes:
// 512 + 1 * 16 + 1 * 4 + 1. Row 128 begins the second row of tiles, which are two a row: 2 * 512.
TEST(Swizzle, ByHand) {
  EXPECT_EQ(swizzledOffset(0, 0, 8), 0);
  EXPECT_EQ(swizzledOffset(1, 0, 8), 16);
  EXPECT_EQ(swizzledOffset(32, 0, 8), 4);
  EXPECT_EQ(swizzledOffset(33, 5, 8), 533);
  EXPECT_EQ(swizzledOffset(128, 0, 8), 1024);
  EXPECT_EQ(swizzledOffset(255, 7, 8), 2047);
}

/// Reading a tile byte by byte in the order of memory gives its scales in the order of the definition.
TEST(Swizzle, FollowsTheOrderOfMemory) {
  constexpr std::int64_t kInner = 12;
  std::int64_t offset = 0;
  for (std::int64_t tileRow = 0; tileRow < 3; ++tileRow)
    for (std::int64_t tileCol = 0; tileCol < kInner / 4; ++tileCol)
      for (std::int64_t row = 0; row < 32; ++row)
        for (std::int64_t quarter = 0; quarter < 4; ++quarter)
          for (std::int64_t block = 0; block < 4; ++block)
            EXPECT_EQ(swizzledOffset(tileRow * 128 + quarter * 32 + row, tileCol * 4 + block, kInner), offset++);
}

/// E8M0 counts from 2^-127, which is subnormal in float32.
TEST(MxScales, AreThePowerOfTwoFourTimes) {
  for (int exponent = -127; exponent <= 127; ++exponent)
    EXPECT_EQ(mxScalesOf(std::ldexp(1.0F, exponent)), static_cast<std::uint32_t>(exponent + 127) * 0x01010101U);
  EXPECT_EQ(mxScalesOf(std::numeric_limits<float>::infinity()), 0xffffffffU);  // NaN
}

TEST(Swizzle, IsAPermutation) {
  EXPECT_TRUE(rc::check([] {
    const std::int64_t rows = 128 * *rc::gen::inRange<std::int64_t>(1, 4);
    const std::int64_t cols = 4 * *rc::gen::inRange<std::int64_t>(1, 9);
    std::set<std::int64_t> offsets;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t col = 0; col < cols; ++col) offsets.insert(swizzledOffset(row, col, cols));
    RC_ASSERT(static_cast<std::int64_t>(offsets.size()) == rows * cols);
    RC_ASSERT(*offsets.begin() == 0 && *offsets.rbegin() == rows * cols - 1);
  }));
}

TEST(GemmScales, HaveTheSizesThatCublasLtWants) {
  EXPECT_TRUE(rc::check([] {
    const std::int64_t rows = *rc::gen::inRange<std::int64_t>(1, 600);
    const std::int64_t cols = *rc::gen::inRange<std::int64_t>(1, 600);
    const TensorSpec x{DType::BF16, {rows, cols}};
    for (const Usage direction : {Usage::Rowwise, Usage::Columnwise}) {
      const std::int64_t outer = direction == Usage::Rowwise ? rows : cols;
      const std::int64_t inner = direction == Usage::Rowwise ? cols : rows;
      const auto size = [&](Scaling scaling) { return numElements(gemmScalesShape(x, scaling, direction)); };
      RC_ASSERT(size(Scaling::PerTensor) == 1);
      RC_ASSERT(size(Scaling::Block1x128) == padded(inner, 128) / 128 * padded(outer, 4));
      RC_ASSERT(size(Scaling::Block128x128) == padded(padded(inner, 128) / 128, 4) * (padded(outer, 128) / 128));
      RC_ASSERT(size(Scaling::Mx1x32) == padded(outer, 128) * padded(padded(inner, 32) / 32, 4));
      RC_ASSERT(size(Scaling::Mx32x32) == size(Scaling::Mx1x32));
      RC_ASSERT(size(Scaling::Nv1x16) == padded(outer, 128) * padded(padded(inner, 16) / 16, 4));
      RC_ASSERT(size(Scaling::Nv16x16) == size(Scaling::Nv1x16));
    }
  }));
}

QuantizedTensor numbered(Scaling scaling, std::int64_t rows, std::int64_t cols) {
  const bool isFp4 = isNvfp4(scaling);
  const Tensor x = Tensor::zeros({DType::F32, {rows, cols}});
  QuantizedTensor tensor =
      *quantize(x, {.format = isFp4 ? ElementFormat::E2M1 : ElementFormat::E4M3, .scaling = scaling}, Copies::Both);
  for (const Usage direction : {Usage::Rowwise, Usage::Columnwise}) {
    std::vector<std::byte>& bytes = tensor.copy(direction)->scaleInv.data;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  }
  return tensor;
}

TEST(GemmScales, ComeBackFromTheirLayout) {
  EXPECT_TRUE(rc::check([] {
    const std::int64_t rows = *rc::gen::inRange<std::int64_t>(1, 300);
    const std::int64_t cols = *rc::gen::inRange<std::int64_t>(1, 300);
    for (const Scaling scaling : kLaidOutScalings) {
      const QuantizedTensor compact = numbered(scaling, rows, cols);
      const QuantizedTensor gemm = withScaleLayout(compact, ScaleLayout::Gemm);
      const QuantizedTensor back = withScaleLayout(gemm, ScaleLayout::Compact);
      for (const Usage direction : {Usage::Rowwise, Usage::Columnwise}) {
        RC_ASSERT(gemm.copy(direction)->scaleInv.spec == scalesSpec(gemm.spec, direction));
        RC_ASSERT(back.copy(direction)->scaleInv.spec == compact.copy(direction)->scaleInv.spec);
        RC_ASSERT(back.copy(direction)->scaleInv.data == compact.copy(direction)->scaleInv.data);
      }
    }
  }));
}

std::uint8_t byteOf(const QuantizedTensor& tensor, Usage direction, std::int64_t index) {
  return static_cast<std::uint8_t>(tensor.copy(direction)->scaleInv.data[static_cast<std::size_t>(index)]);
}

// [160, 96] in blocks of 32: rowwise [160, 3] scales, columnwise [5, 96], where the outer rows are the columns of x.
TEST(GemmScales, MxStandWhereTheTilesWantThem) {
  const QuantizedTensor compact = numbered(Scaling::Mx1x32, 160, 96);
  const QuantizedTensor gemm = withScaleLayout(compact, ScaleLayout::Gemm);
  for (std::int64_t row = 0; row < 160; ++row)
    for (std::int64_t block = 0; block < 3; ++block)
      EXPECT_EQ(byteOf(gemm, Usage::Rowwise, swizzledOffset(row, block, 4)),
                byteOf(compact, Usage::Rowwise, row * 3 + block));
  for (std::int64_t col = 0; col < 96; ++col)
    for (std::int64_t block = 0; block < 5; ++block)
      EXPECT_EQ(byteOf(gemm, Usage::Columnwise, swizzledOffset(col, block, 8)),
                byteOf(compact, Usage::Columnwise, block * 96 + col));
  EXPECT_EQ(byteOf(gemm, Usage::Rowwise, swizzledOffset(5, 3, 4)), 0);  // padding
}

// A block of 16 x 16 has one scale, which each of its 16 rows needs.
TEST(GemmScales, BlocksOfSeveralRowsRepeatTheirScale) {
  const QuantizedTensor compact = numbered(Scaling::Nv16x16, 40, 64);
  const QuantizedTensor gemm = withScaleLayout(compact, ScaleLayout::Gemm);
  for (std::int64_t row = 0; row < 40; ++row)
    for (std::int64_t block = 0; block < 4; ++block)
      EXPECT_EQ(byteOf(gemm, Usage::Rowwise, swizzledOffset(row, block, 4)),
                byteOf(compact, Usage::Rowwise, row / 16 * 4 + block));
}

float scaleOf(const QuantizedTensor& tensor, std::int64_t index) {
  return static_cast<float>(tensor.rowwise->scaleInv.toDoubles()[static_cast<std::size_t>(index)]);
}

// 1x128: the rows of x are contiguous, 6 of them padded to 8. 128x128: a row of 3 blocks is padded to 4.
TEST(GemmScales, Fp8BlocksArePaddedToFour) {
  const QuantizedTensor narrow = numbered(Scaling::Block1x128, 6, 300);
  const QuantizedTensor narrowGemm = withScaleLayout(narrow, ScaleLayout::Gemm);
  EXPECT_EQ(narrowGemm.rowwise->scaleInv.spec.shape, (Shape{3, 8}));
  EXPECT_EQ(scaleOf(narrowGemm, 2 * 8 + 5), scaleOf(narrow, 5 * 3 + 2));
  const QuantizedTensor square = numbered(Scaling::Block128x128, 200, 300);
  const QuantizedTensor squareGemm = withScaleLayout(square, ScaleLayout::Gemm);
  EXPECT_EQ(squareGemm.rowwise->scaleInv.spec.shape, (Shape{2, 4}));
  EXPECT_EQ(scaleOf(squareGemm, 4 + 2), scaleOf(square, 3 + 2));
  EXPECT_EQ(scaleOf(squareGemm, 3), 0.0f);
}

TEST(GemmScales, DequantizeToTheSame) {
  Tensor x = Tensor::zeros({DType::F32, {70, 50}});
  std::vector<double> values(70 * 50);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 31 % 97) - 48.0;
  x = Tensor::fromDoubles(x.spec, values);
  const QuantizedTensor compact = *quantize(x, {.scaling = Scaling::Mx1x32}, Copies::Both);
  const QuantizedTensor gemm = withScaleLayout(compact, ScaleLayout::Gemm);
  EXPECT_EQ(dequantize(gemm, Usage::Columnwise)->data, dequantize(compact, Usage::Columnwise)->data);
}

}  // namespace
}  // namespace fuseline
