// The operands on which algorithms are timed.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemm_sample.h"

#include "core/tensor/tensor.h"
#include "tests/support/simt/host_gemm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

std::vector<std::byte> filled(const SampleOperand& operand) {
  std::vector<std::byte> bytes(operand.sizeBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = operand.pattern[i % operand.pattern.size()];
  return bytes;
}

/// c, computed from the sample; the host's GEMM reads every operand of the problem.
std::vector<double> productOf(GemmProblem problem) {
  problem.alignmentBytes = alignof(std::max_align_t);  // of vectors
  const GemmSample sample = sampleOf(problem);
  const auto a = filled(sample.a);
  const auto b = filled(sample.b);
  const auto aScales = filled(sample.aScales);
  const auto bScales = filled(sample.bScales);
  const auto factors = filled(sample.factors);
  const auto bias = filled(sample.bias);
  const auto geluInput = filled(sample.geluInput);
  auto c = filled(sample.c);
  const auto gemm = testing::makeHostGemms()->prepare(problem);
  (*gemm)->multiply({.a = a.data(),
                     .b = b.data(),
                     .bias = bias.data(),
                     .addend = c.data(),
                     .aScales = aScales.data(),
                     .bScales = bScales.data(),
                     .factors = factors.data(),
                     .geluInput = geluInput.data(),
                     .c = c.data()},
                    nullptr, nullptr);
  std::vector<double> values(static_cast<std::size_t>(problem.m * problem.n));
  decode(c.data(), problem.cType, values);
  return values;
}

void expectOrdinary(const std::vector<double>& values) {
  for (const double value : values) ASSERT_TRUE(std::isfinite(value));
  const auto numZeros = std::ranges::count(values, 0.0);
  EXPECT_LE(numZeros, static_cast<std::ptrdiff_t>(values.size() / 50));
  EXPECT_TRUE(std::ranges::any_of(values, [](double value) { return value < 0; }));
  EXPECT_TRUE(std::ranges::any_of(values, [](double value) { return value > 0; }));
}

TEST(GemmSample, OfPlainFactorsGivesOrdinaryNumbers) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    expectOrdinary(productOf({.m = 24,
                              .n = 40,
                              .k = 56,
                              .b = Storage2d::Transposed,
                              .factorType = dtype,
                              .cType = dtype,
                              .hasBias = true,
                              .hasAddend = true}));
}

/// Heads side by side, each of which is a factor: the sample is as large as all of them, and no larger.
TEST(GemmSample, OfABatchHasRoomForAllOfIt) {
  const GemmSample sample =
      sampleOf({.m = 5,
                .n = 3,
                .k = 7,
                .b = Storage2d::Transposed,
                .batch = {.count = 2, .aStride = 7, .bStride = 7, .cStride = 15, .aRow = 14, .bRow = 14}});
  EXPECT_EQ(sample.a.sizeBytes, 5u * 14 * 4);
  EXPECT_EQ(sample.b.sizeBytes, 3u * 14 * 4);
  EXPECT_EQ(sample.c.sizeBytes, 2u * 5 * 3 * 4);
}

TEST(GemmSample, OfGelusGradientGivesOrdinaryNumbers) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    expectOrdinary(productOf({.m = 24, .n = 40, .k = 56, .factorType = dtype, .cType = dtype, .hasGeluGrad = true}));
}

/// Sizes that are no multiples of blocks: the scales' padding must be there, too.
TEST(GemmSample, OfCodesGivesOrdinaryNumbersUnderEveryScaling) {
  for (const Scaling scaling : {Scaling::PerTensor, Scaling::Block1x128, Scaling::Block128x128, Scaling::Mx1x32})
    for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2})
      expectOrdinary(productOf({.m = 136,
                                .n = 24,
                                .k = 288,
                                .b = Storage2d::Transposed,
                                .aCodes = FactorCodes{ElementFormat::E4M3, scaling},
                                .bCodes = FactorCodes{format, scaling},
                                .cType = DType::F32}));
}

TEST(GemmSample, OfFp4GivesOrdinaryNumbers) {
  for (const Scaling scaling : {Scaling::Nv1x16, Scaling::Nv16x16})
    expectOrdinary(productOf({.m = 136,
                              .n = 24,
                              .k = 288,
                              .b = Storage2d::Transposed,
                              .aCodes = FactorCodes{ElementFormat::E2M1, Scaling::Nv1x16},
                              .bCodes = FactorCodes{ElementFormat::E2M1, scaling},
                              .cType = DType::F32,
                              .hasAddend = true}));
}

TEST(GemmSample, HasNeitherZerosNorSpecialNumbers) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    const GemmSample sample = sampleOf({.m = 1, .n = 1, .k = 1, .factorType = dtype});
    std::vector<double> values(sample.a.pattern.size() / static_cast<std::size_t>(sizeBytes(dtype)));
    decode(sample.a.pattern.data(), dtype, values);
    for (const double value : values) ASSERT_TRUE(std::isfinite(value) && value != 0.0);
  }
}

TEST(GemmSample, LeavesOutWhatTheProblemDoesNotHave) {
  const GemmSample sample = sampleOf({.m = 2, .n = 3, .k = 4});
  EXPECT_EQ(sample.a.sizeBytes, 2u * 4 * 4);
  EXPECT_EQ(sample.b.sizeBytes, 4u * 3 * 4);
  EXPECT_EQ(sample.c.sizeBytes, 2u * 3 * 4);
  EXPECT_EQ(sample.bias.sizeBytes + sample.geluInput.sizeBytes + sample.aScales.sizeBytes + sample.bScales.sizeBytes,
            0u);
}

}  // namespace
}  // namespace fuseline::cuda
