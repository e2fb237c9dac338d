// Quantization with one scale a tensor under the SIMT harness: bit for bit what core/quant makes.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize_launch.h"

#include "core/numerics/bf16.h"
#include "core/quant/copy_memory.h"
#include "core/tensor/scaling.h"
#include "core/tensor/tensor.h"
#include "kernels/cuda/elementwise_program.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

constexpr Direction kDirections[] = {Direction::Rowwise, Direction::Columnwise};

TensorSpec copySpec(const Tensor& x, const QuantizerSpec& quantizer, Direction direction) {
  TensorSpec spec = x.spec;
  spec.quantized = formOf(quantizer, direction);
  return spec;
}

std::vector<std::byte> expectedCopy(const Tensor& x, const QuantizerSpec& quantizer, Direction direction) {
  const TensorSpec spec = copySpec(x, quantizer, direction);
  std::vector<std::byte> memory(static_cast<std::size_t>(spec.bytes()));
  EXPECT_TRUE(quantizeToMemory(x, quantizer, {}, spec, memory.data()));
  return memory;
}

/// Both copies, as the kernels make them.
struct Copies {
  std::vector<std::byte> memory[2];

  Copies(const Tensor& x, const QuantizerSpec& quantizer) {
    const device::Element element = elementOf(x.spec.dtype);
    float amax = 0.0F;
    launchAmax(x.data.data(), element, x.spec.numElements(), &amax, 2, nullptr);
    TensorQuantization task{
        .x = x.data.data(), .element = element, .rows = x.spec.rows(), .cols = x.spec.cols(), .amax = &amax};
    task.rowwise = copy(x, quantizer, Direction::Rowwise);
    task.columnwise = copy(x, quantizer, Direction::Columnwise);
    launchQuantize(task, nullptr);
  }

 private:
  QuantizedCopy copy(const Tensor& x, const QuantizerSpec& quantizer, Direction direction) {
    const TensorSpec spec = copySpec(x, quantizer, direction);
    std::vector<std::byte>& bytes = memory[static_cast<int>(direction)];
    bytes.resize(static_cast<std::size_t>(spec.bytes()));
    return {.codes = reinterpret_cast<std::uint8_t*>(bytes.data()),
            .inverseScale = reinterpret_cast<float*>(bytes.data() + partsOf(spec).scalesOffset),
            .code = quantizer.format == ElementFormat::E5M2 ? device::FloatCode::E5M2 : device::FloatCode::E4M3,
            .rule = {.epsilon = quantizer.scale.epsilon, .isPowerOfTwo = quantizer.scale.isPowerOfTwo}};
  }
};

void expectEqualCopies(const Tensor& x, const QuantizerSpec& quantizer) {
  const Copies copies(x, quantizer);
  for (const Direction direction : kDirections)
    EXPECT_EQ(copies.memory[static_cast<int>(direction)], expectedCopy(x, quantizer, direction))
        << toString(x.spec) << " " << directionName(direction);
}

Tensor waves(DType dtype, const Shape& shape, double scale) {
  std::vector<double> values(static_cast<std::size_t>(numElements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * std::sin(static_cast<double>(i) * 0.37);
  return Tensor::fromDoubles({dtype, shape}, values);
}

TEST(DequantizeKernel, GivesTheNumberOfEveryCodeAsCoreDoes) {
  for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2})
    for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
      for (const Shape& shape : {Shape{257}, Shape{1, 1}, Shape{33, 47}}) {
        const Tensor x = waves(dtype, shape, 3.0);
        const std::vector<std::byte> memory = expectedCopy(x, {.format = format}, Direction::Rowwise);
        const TensorSpec spec = copySpec(x, {.format = format}, Direction::Rowwise);
        Tensor out = Tensor::zeros(x.spec);
        launchDequantize({.codes = reinterpret_cast<const std::uint8_t*>(memory.data()),
                          .inverseScale = reinterpret_cast<const float*>(memory.data() + partsOf(spec).scalesOffset),
                          .code = format == ElementFormat::E5M2 ? device::FloatCode::E5M2 : device::FloatCode::E4M3,
                          .out = out.data.data(),
                          .element = elementOf(dtype),
                          .elements = x.spec.numElements()},
                         nullptr);
        EXPECT_EQ(out.data, dequantize(fromMemory(spec, memory.data()), Direction::Rowwise)->data) << toString(x.spec);
      }
}

TEST(QuantizeKernel, MakesTheCopiesOfOddSizes) {
  for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2})
    for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
      for (const Shape& shape : {Shape{1, 1}, Shape{33, 47}, Shape{2, 5, 64}})
        expectEqualCopies(waves(dtype, shape, 3.0), {.format = format});
}

TEST(QuantizeKernel, FollowsTheOptionsOfScales) {
  expectEqualCopies(waves(DType::BF16, {7, 9}, 3.0), {.scale = {.isPowerOfTwo = true}});
  expectEqualCopies(waves(DType::F32, {7, 9}, 1e-6), {.scale = {.epsilon = 0.01F}});
  expectEqualCopies(waves(DType::F32, {7, 9}, 1e-38), {});
  expectEqualCopies(waves(DType::F32, {7, 9}, 0.0), {});
}

/// Infinities make the scale 1 and saturate; NaN does not count, and stays.
TEST(QuantizeKernel, CastsEveryBf16ValueAsCoreDoes) {
  Tensor x = Tensor::zeros({DType::BF16, {256, 256}});
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto code = static_cast<std::uint16_t>(bits);
    std::memcpy(x.data.data() + std::size_t{bits} * sizeof(code), &code, sizeof(code));
  }
  for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2})
    expectEqualCopies(x, {.format = format});
}

}  // namespace
}  // namespace fuseline::cuda
