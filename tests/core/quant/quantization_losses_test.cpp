// Losses of a quantized tensor, against numbers computed by hand.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/quantization_losses.h"

#include "core/quant/copy_memory.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

QuantizationLosses losses(const std::vector<double>& values, Shape shape, const QuantizerSpec& quantizer,
                          std::optional<float> scale = std::nullopt) {
  const Tensor x = Tensor::fromDoubles({DType::F32, std::move(shape)}, values);
  TensorSpec copy = x.spec;
  copy.quantized = formOf(quantizer, Usage::Rowwise);
  std::vector<std::byte> memory(static_cast<std::size_t>(copy.bytes()));
  QuantizerInputs inputs;
  inputs.scale = scale;
  EXPECT_TRUE(quantizeToMemory(x, quantizer, inputs, copy, memory.data()).hasValue());
  return lossesOf(x, copy, memory.data());
}

TEST(QuantizationLosses, CountWhatVanishesAndWhatSaturates) {
  // With scale 1: 1000 and -500 lie beyond 448; 2^-12 is below half of 2^-9, the smallest number; 0 is no loss.
  const QuantizationLosses found = losses({1000.0, -500.0, 0x1p-12, 0.0, 1.0, 2.0, 3.0, 448.0}, {1, 8}, {}, 1.0F);
  EXPECT_DOUBLE_EQ(found.saturationShare, 2.0 / 8.0);
  EXPECT_DOUBLE_EQ(found.underflowShare, 1.0 / 7.0);
  EXPECT_DOUBLE_EQ(found.meanSquaredError, (552.0 * 552.0 + 52.0 * 52.0 + 0x1p-24) / 8.0);
  EXPECT_EQ(found.amax, 1000.0);
  EXPECT_EQ(found.smallest, 0x1p-12);
  EXPECT_NEAR(found.dynamicRange(), std::log2(1000.0) + 12.0, 1e-12);
  EXPECT_EQ(found.scaleInvMin, 1.0);
}

TEST(QuantizationLosses, AreNoneForNumbersOfTheFormat) {
  const QuantizationLosses found = losses({448.0, -1.5, 0x1p-9, 0.0}, {2, 2}, {});
  EXPECT_EQ(found.meanSquaredError, 0.0);
  EXPECT_TRUE(std::isinf(found.signalToNoise));
  EXPECT_EQ(found.underflowShare, 0.0);
  EXPECT_EQ(found.saturationShare, 0.0);
}

TEST(QuantizationLosses, ShowTheScalesOfAllBlocks) {
  std::vector<double> values(64, 448.0);
  for (std::size_t i = 32; i < 64; ++i) values[i] = 28.0;  // 448 / 2^4
  const QuantizationLosses found = losses(values, {1, 64}, {.scaling = Scaling::Mx1x32});
  EXPECT_EQ(found.scaleInvMax, 1.0);
  EXPECT_EQ(found.scaleInvMin, 0x1p-4);
  EXPECT_EQ(found.meanSquaredError, 0.0);
}

TEST(QuantizationLosses, DoNotCountInfinityAndNan) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const QuantizationLosses found =
      losses({1.0, kInfinity, std::numeric_limits<double>::quiet_NaN(), 2.0}, {1, 4}, {}, 1.0F);
  EXPECT_EQ(found.amax, 2.0);
  EXPECT_EQ(found.meanSquaredError, 0.0);
}

}  // namespace
}  // namespace fuseline
