// NVFP4's 4over6 against TransformerEngine's PyTorch reference, bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/quantizer.h"
#include "core/quant/recipe.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

constexpr std::int64_t kExtent = 32;

/// Numbers between -3.9 and 3.9 that bf16 holds nearly: both programs draw them and round.
Tensor sample() {
  std::uint32_t state = 12345;
  std::vector<double> values;
  for (std::int64_t i = 0; i < kExtent * kExtent; ++i) {
    state = (state * 1103515245U + 12345U) & 0x7fffffffU;
    values.push_back((static_cast<double>((state >> 16) % 2001) - 1000.0) / 256.0);
  }
  return Tensor::fromDoubles({DType::BF16, {kExtent, kExtent}}, values);
}

/// Hash of the quantized values and the scales in both directions.
std::uint32_t hashOf(const QuantizedTensor& tensor) {
  std::uint32_t hash = 0;
  for (const auto* copy : {&*tensor.rowwise, &*tensor.columnwise})
    for (const Tensor* part : {&copy->data, &copy->scaleInv})
      for (const std::byte byte : part->data) hash = hash * 31 + static_cast<std::uint8_t>(byte);
  return hash;
}

QuantizedTensor quantized(Scaling scaling, FourOverSix options) {
  return *quantize(sample(), {.format = ElementFormat::E2M1, .scaling = scaling, .fourOverSix = options}, Copies::Both);
}

/// From NVFP4QuantizerRef(nvfp4_use_4over6=True, ...) of TransformerEngine 2.20.2 for the same numbers.
TEST(FourOverSix, HasTheBitsOfTransformerEngine) {
  EXPECT_EQ(hashOf(quantized(Scaling::Nv1x16, {.scaleMax = 256, .isBySquares = false})), 0x4ac6f826U);
  EXPECT_EQ(hashOf(quantized(Scaling::Nv1x16, {.scaleMax = 256, .isBySquares = true})), 0x657d2c0fU);
  EXPECT_EQ(hashOf(quantized(Scaling::Nv1x16, {.scaleMax = 448, .isBySquares = false})), 0xabe9fe18U);
  EXPECT_EQ(hashOf(quantized(Scaling::Nv1x16, {.scaleMax = 448, .isBySquares = true})), 0x781b3cffU);
  EXPECT_EQ(hashOf(quantized(Scaling::Nv16x16, {.scaleMax = 256, .isBySquares = false})), 0x90011f9fU);
  EXPECT_EQ(hashOf(quantized(Scaling::Nv16x16, {.scaleMax = 256, .isBySquares = true})), 0x32b439eeU);
  EXPECT_EQ(hashOf(quantized(Scaling::Nv16x16, {.scaleMax = 448, .isBySquares = false})), 0xd3498555U);
  EXPECT_EQ(hashOf(quantized(Scaling::Nv16x16, {.scaleMax = 448, .isBySquares = true})), 0xd3498555U);
}

/// From NVFP4QuantizerRef(row_scaled_nvfp4=True, ...): a float32 scale for each row of what is stored.
TEST(RowScaledNvfp4, HasTheBitsOfTransformerEngine) {
  const QuantizedTensor plain =
      *quantize(sample(), {.format = ElementFormat::E2M1, .scaling = Scaling::NvRow1x16}, Copies::Both);
  EXPECT_EQ(hashOf(plain), 0x172b2dabU);
  EXPECT_EQ(hashOf(quantized(Scaling::NvRow1x16, {.scaleMax = 256, .isBySquares = false})), 0xffb9b449U);
  EXPECT_EQ(hashOf(quantized(Scaling::NvRow1x16, {.scaleMax = 448, .isBySquares = true})), 0x724dc18bU);
}

TEST(RowScaledNvfp4, QuantizesEveryRowLikeATensorOfItsOwn) {
  const Tensor x = sample();
  const std::vector<double> values = x.toDoubles();
  const QuantizedTensor whole =
      *quantize(x, {.format = ElementFormat::E2M1, .scaling = Scaling::NvRow1x16}, Copies::Rowwise);
  const std::vector<double> read = dequantize(whole, Usage::Rowwise)->toDoubles();
  for (std::int64_t row = 0; row < kExtent; ++row) {
    const auto first = static_cast<std::ptrdiff_t>(row * kExtent);
    const Tensor alone =
        Tensor::fromDoubles({DType::BF16, {1, kExtent}}, {values.begin() + first, values.begin() + first + kExtent});
    const QuantizedTensor one =
        *quantize(alone, {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16}, Copies::Rowwise);
    const std::vector<double> expected = dequantize(one, Usage::Rowwise)->toDoubles();
    EXPECT_EQ(std::vector<double>(read.begin() + first, read.begin() + first + kExtent), expected) << row;
    EXPECT_EQ(whole.rowwise->rowAmaxes[static_cast<std::size_t>(row)], *one.rowwise->amax);
  }
}

TEST(FourOverSix, LosesLessThanScalesThatAlwaysMapToSix) {
  const Tensor x = sample();
  const auto errorOf = [&](const QuantizedTensor& tensor) {
    const std::vector<double> read = dequantize(tensor, Usage::Rowwise)->toDoubles();
    const std::vector<double> values = x.toDoubles();
    double error = 0.0;
    for (std::size_t i = 0; i < read.size(); ++i) error += std::abs(read[i] - values[i]);
    return error;
  };
  const QuantizedTensor plain = *quantize(x, {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16}, Copies::Both);
  EXPECT_LT(errorOf(quantized(Scaling::Nv1x16, {})), errorOf(plain));
}

/// TransformerEngine's _make() of NVFP4BlockScalingRecipeState.
TEST(FourOverSix, IsForTheTensorsThatTheRecipeNames) {
  const auto recipeOf = [](const char* scope, const char* use256) {
    Attributes fields;
    fields.set("nvfp4_4over6", std::string(scope));
    fields.set("nvfp4_4over6_e4m3_use_256", std::string(use256));
    fields.set("disable_rht", true);
    return *Recipe::create(*findRecipe("NVFP4BlockScaling"), fields);
  };
  const auto scaleMaxOf = [](const Recipe& recipe, TensorType tensor, GemmRole gemm) {
    const auto spec = recipe.quantizerFor({tensor, gemm});
    return spec->fourOverSix ? spec->fourOverSix->scaleMax : 0;
  };
  const Recipe all = recipeOf("all", "weights");
  EXPECT_EQ(scaleMaxOf(all, TensorType::Input, GemmRole::Fprop), 448);
  EXPECT_EQ(scaleMaxOf(all, TensorType::Weight, GemmRole::Fprop), 256);
  EXPECT_EQ(scaleMaxOf(all, TensorType::GradOutput, GemmRole::Dgrad), 0);
  EXPECT_EQ(scaleMaxOf(recipeOf("weights", "all"), TensorType::Input, GemmRole::Fprop), 0);
}

}  // namespace
}  // namespace fuseline
