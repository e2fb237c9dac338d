// Copies that the CPU makes and decodes, against core/quant: the same bytes.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantize/quantized_copy.h"

#include "core/quant/copy_memory.h"
#include "core/tensor/random_tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fuseline::cpu {
namespace {

struct Case {
  TensorSpec source;
  QuantizerSpec quantizer;
  Usage direction = Usage::Rowwise;
  std::optional<float> scale;
};

Scaling anyScaling() {
  return *rc::gen::element(Scaling::PerTensor, Scaling::Block1x128, Scaling::Block128x128, Scaling::Mx1x32,
                           Scaling::Mx32x32, Scaling::Nv1x16, Scaling::Nv16x16);
}

/// Odd sizes too, and more rows and columns than a block, a strip and a chunk have.
Case anyCase() {
  Case drawn;
  drawn.source = {*rc::gen::element(DType::F32, DType::F16, DType::BF16),
                  {*rc::gen::inRange<std::int64_t>(0, 300), *rc::gen::inRange<std::int64_t>(1, 300)}};
  drawn.quantizer.scaling = anyScaling();
  const bool isFp4 = isNvfp4(drawn.quantizer.scaling);
  drawn.quantizer.format = isFp4 ? ElementFormat::E2M1 : *rc::gen::element(ElementFormat::E4M3, ElementFormat::E5M2);
  drawn.quantizer.scale = {.epsilon = *rc::gen::element(0.0F, 0.5F), .isPowerOfTwo = *rc::gen::arbitrary<bool>()};
  drawn.quantizer.roundsStochastically = isFp4 && *rc::gen::arbitrary<bool>();
  drawn.quantizer.transformsColumnwise = isFp4 && *rc::gen::arbitrary<bool>();
  if (drawn.quantizer.transformsColumnwise) drawn.source.shape[0] = drawn.source.shape[0] / 16 * 16;
  drawn.direction = *rc::gen::element(Usage::Rowwise, Usage::Columnwise);
  if (*rc::gen::arbitrary<bool>()) drawn.scale = *rc::gen::element(1.0F, 0.3F, 4096.0F);
  return drawn;
}

Tensor dataFor(const Case& drawn) {
  Tensor x = randomNormal(drawn.source, *rc::gen::inRange(0, 1000), "x");
  std::vector<double> values = x.toDoubles();
  if (values.empty() || !*rc::gen::arbitrary<bool>()) return x;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i)
    values[*rc::gen::inRange<std::size_t>(0, values.size())] =
        *rc::gen::element(0.0, -0.0, 1e4, -3e-8, kInfinity, std::numeric_limits<double>::quiet_NaN());
  return Tensor::fromDoubles(drawn.source, values);
}

TensorSpec copySpec(const Case& drawn) {
  TensorSpec spec = drawn.source;
  spec.quantized = formOf(drawn.quantizer, drawn.direction);
  return spec;
}

QuantizerInputs inputsOf(const Case& drawn) {
  return {.scale = drawn.scale, .amax = std::nullopt, .transformedAmax = std::nullopt, .seed = 7, .name = "fc.input"};
}

std::vector<std::byte> expectedBytes(const Case& drawn, const Tensor& x) {
  const TensorSpec copy = copySpec(drawn);
  std::vector<std::byte> bytes(static_cast<std::size_t>(copy.bytes()));
  const Result<void> made = quantizeToMemory(x, drawn.quantizer, inputsOf(drawn), copy, bytes.data());
  RC_ASSERT(made.hasValue());
  return bytes;
}

RC_GTEST_PROP(QuantizedCopy, HasTheBytesOfTheReference, ()) {
  const Case drawn = anyCase();
  const Tensor x = dataFor(drawn);
  const TensorSpec copy = copySpec(drawn);
  std::vector<std::byte> actual(static_cast<std::size_t>(copy.bytes()));
  quantizeCopy(x.data.data(), drawn.source, drawn.quantizer, inputsOf(drawn), amaxOf(x.data.data(), drawn.source), copy,
               actual.data());
  RC_ASSERT(actual == expectedBytes(drawn, x));
}

RC_GTEST_PROP(CopyRows, HasTheBytesOfTheReferenceInAnyOrderOfBlocks, ()) {
  Case drawn = anyCase();
  drawn.quantizer.scaling = *rc::gen::element(Scaling::PerTensor, Scaling::Block1x128, Scaling::Block128x128,
                                              Scaling::Mx1x32, Scaling::Mx32x32);
  drawn.quantizer.format = *rc::gen::element(ElementFormat::E4M3, ElementFormat::E5M2);
  drawn.quantizer.transformsColumnwise = drawn.quantizer.roundsStochastically = false;
  const Tensor x = dataFor(drawn);
  TensorQuantizers quantizers{.rowwise = drawn.quantizer, .columnwise = drawn.quantizer};
  if (*rc::gen::arbitrary<bool>()) quantizers.rowwise.reset();
  Case columnwise = drawn;
  drawn.direction = Usage::Rowwise;
  columnwise.direction = Usage::Columnwise;
  std::vector<std::byte> rowBytes(static_cast<std::size_t>(copySpec(drawn).bytes()));
  std::vector<std::byte> columnBytes(static_cast<std::size_t>(copySpec(columnwise).bytes()));

  RC_ASSERT(CopyRows::canMake(quantizers));
  CopyRows copies(drawn.source, quantizers, inputsOf(drawn), amaxOf(x.data.data(), drawn.source),
                  {copySpec(drawn), rowBytes.data()}, {copySpec(columnwise), columnBytes.data()});
  const std::int64_t height = CopyRows::blockRows(quantizers) * *rc::gen::element(1, 2);
  const std::int64_t rows = drawn.source.rows();
  const bool isBackwards = *rc::gen::arbitrary<bool>();
  for (std::int64_t block = 0; block < ceilDiv(rows, height); ++block) {
    const std::int64_t first = (isBackwards ? ceilDiv(rows, height) - 1 - block : block) * height;
    const std::int64_t offset = first * drawn.source.cols() * sizeBytes(drawn.source.dtype);
    copies.write(x.data.data() + offset, first, std::min(height, rows - first));
  }
  if (quantizers.rowwise) RC_ASSERT(rowBytes == expectedBytes(drawn, x));
  RC_ASSERT(columnBytes == expectedBytes(columnwise, x));
}

/// The matrix in its stored orientation, times its factor; the reference transposes back.
std::vector<double> decoded(const TensorSpec& copy, const std::vector<std::byte>& bytes) {
  Tensor matrix = Tensor::zeros({DType::F32, copy.shape});
  const float factor = decodeCopy(bytes.data(), copy, DType::F32, matrix.data.data());
  std::vector<double> stored = matrix.toDoubles();
  std::vector<double> values(stored.size());
  const bool isTransposed =
      copy.quantized->direction == Usage::Columnwise && traitsOf(copy.quantized->scaling).isColumnwiseTransposed;
  const auto rows = static_cast<std::size_t>(copy.rows());
  const auto cols = static_cast<std::size_t>(copy.cols());
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t col = 0; col < cols; ++col)
      values[row * cols + col] =
          static_cast<double>(factor) * stored[isTransposed ? col * rows + row : row * cols + col];
  return values;
}

RC_GTEST_PROP(QuantizedCopy, StandsForTheNumbersOfTheReference, ()) {
  Case drawn = anyCase();
  drawn.quantizer.transformsColumnwise = false;  // dequantization leaves the transform to the GEMM
  const Tensor x = dataFor(drawn);
  const TensorSpec copy = copySpec(drawn);
  const std::vector<std::byte> bytes = expectedBytes(drawn, x);
  const std::vector<double> actual = decoded(copy, bytes);
  const std::vector<double> expected = dequantizedValues(copy, bytes.data());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) continue;
    RC_ASSERT(std::abs(actual[i] - expected[i]) <= 1e-6 * std::abs(expected[i]));
  }
}

TEST(QuantizedCopy, DecodesToBf16ExactlyWhereScalesArePowersOfTwo) {
  for (const Scaling scaling : {Scaling::PerTensor, Scaling::Block1x128, Scaling::Mx1x32, Scaling::Nv1x16}) {
    const ElementFormat format = isNvfp4(scaling) ? ElementFormat::E2M1 : ElementFormat::E4M3;
    const QuantizerSpec quantizer{.format = format, .scaling = scaling, .scale = {.isPowerOfTwo = true}};
    const Tensor x = randomNormal({DType::BF16, {64, 256}}, 1, "x");
    TensorSpec copy = x.spec;
    copy.quantized = formOf(quantizer, Usage::Rowwise);
    std::vector<std::byte> bytes(static_cast<std::size_t>(copy.bytes()));
    ASSERT_TRUE(quantizeToMemory(x, quantizer, {}, copy, bytes.data()).hasValue());
    Tensor inBf16 = Tensor::zeros({DType::BF16, copy.shape});
    Tensor inF32 = Tensor::zeros({DType::F32, copy.shape});
    ASSERT_EQ(decodedDType(*copy.quantized, true), DType::BF16);
    decodeCopy(bytes.data(), copy, DType::BF16, inBf16.data.data());
    decodeCopy(bytes.data(), copy, DType::F32, inF32.data.data());
    EXPECT_EQ(inBf16.toDoubles(), inF32.toDoubles()) << traitsOf(scaling).name;
  }
}

}  // namespace
}  // namespace fuseline::cpu
