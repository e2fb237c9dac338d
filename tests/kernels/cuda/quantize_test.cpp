// Quantization with one scale per tensor or block under the SIMT harness: bit for bit equal to core/quant.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize/quantize_launch.h"

#include "core/numerics/bf16.h"
#include "core/quant/copy_memory.h"
#include "core/quant/scale_layout.h"
#include "core/tensor/scaling.h"
#include "core/tensor/tensor.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/quantize/block_quantize_launch.h"
#include "kernels/cuda/quantize/coded_copy.h"
#include "kernels/cuda/quantize/nvfp4_launch.h"
#include "kernels/cuda/quantize/scale_launch.h"

#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

constexpr Usage kDirections[] = {Usage::Rowwise, Usage::Columnwise};

TensorSpec copySpec(const Tensor& x, const QuantizerSpec& quantizer, Usage direction) {
  TensorSpec spec = x.spec;
  spec.quantized = formOf(quantizer, direction);
  return spec;
}

std::vector<std::byte> expectedCopy(const Tensor& x, const QuantizerSpec& quantizer, Usage direction) {
  const TensorSpec spec = copySpec(x, quantizer, direction);
  std::vector<std::byte> memory(static_cast<std::size_t>(spec.bytes()));
  EXPECT_TRUE(quantizeToMemory(x, quantizer, {}, spec, memory.data()));
  return memory;
}

/// Tensors quantized in both directions, by the kernels, together.
class Copies {
 public:
  Copies(std::span<const Tensor> tensors, const QuantizerSpec& quantizer)
      : m_tensors(tensors), m_quantizer(quantizer), m_memory(tensors.size()) {
    copyKindOf(quantizer.scaling) == device::CopyKind::Tensor ? makeOfTensors() : makeOfBlocks();
  }

  void expectEqual() const {
    for (std::size_t i = 0; i < m_tensors.size(); ++i)
      for (const Usage direction : kDirections)
        EXPECT_EQ(m_memory[i][static_cast<int>(direction)], expectedCopy(m_tensors[i], m_quantizer, direction))
            << i << ": " << toString(m_tensors[i].spec) << " " << traitsOf(m_quantizer.scaling).name << " "
            << directionName(direction);
  }

  /// In their stored order.
  std::vector<std::byte> scales(std::size_t index, Usage direction) const {
    const CopyParts parts = partsOf(copySpec(m_tensors[index], m_quantizer, direction));
    const auto first = m_memory[index][static_cast<std::size_t>(direction)].begin() + parts.scalesOffset;
    return {first, first + parts.scalesBytes};
  }

 private:
  void makeOfTensors() {
    std::vector<float> amaxes(m_tensors.size(), -1.0F);
    std::vector<AmaxSearch> searches;
    std::vector<TensorQuantization> tasks;
    for (std::size_t i = 0; i < m_tensors.size(); ++i) {
      tasks.push_back(taskOf<TensorQuantization>(i));
      tasks.back().amax = &amaxes[i];
      searches.push_back({tasks[i].x, tasks[i].element, m_tensors[i].spec.numElements(), &amaxes[i]});
    }
    const std::span<float> cleared(amaxes);
    launchClear({&cleared, 1}, nullptr);
    launchAmax(searches, 2, nullptr);
    launchQuantize(tasks, nullptr);
  }

  void makeOfBlocks() {
    std::vector<BlockQuantization> tasks;
    for (std::size_t i = 0; i < m_tensors.size(); ++i) tasks.push_back(taskOf<BlockQuantization>(i));
    launchBlockQuantize(tasks, copyKindOf(m_quantizer.scaling), nullptr);
  }

  template <class Task>
  Task taskOf(std::size_t index) {
    const Tensor& x = m_tensors[index];
    return {.x = x.data.data(),
            .element = elementOf(x.spec.dtype),
            .rows = x.spec.rows(),
            .cols = x.spec.cols(),
            .rowwise = copyOf(index, Usage::Rowwise),
            .columnwise = copyOf(index, Usage::Columnwise)};
  }

  device::CodedCopy copyOf(std::size_t index, Usage direction) {
    const TensorSpec spec = copySpec(m_tensors[index], m_quantizer, direction);
    std::vector<std::byte>& bytes = m_memory[index][static_cast<std::size_t>(direction)];
    bytes.assign(static_cast<std::size_t>(spec.bytes()), std::byte{0});
    const CopyParts parts = partsOf(spec);
    std::fill_n(bytes.begin() + parts.scalesOffset, parts.scalesBytes, std::byte{0xff});
    device::CodedCopy made = codedCopyOf(spec, bytes.data());
    made.rule = scaleRuleOf(m_quantizer, m_tensors[index].spec.dtype);
    return made;
  }

  std::span<const Tensor> m_tensors;
  QuantizerSpec m_quantizer;
  std::vector<std::array<std::vector<std::byte>, 2>> m_memory;
};

void expectEqualCopies(const Tensor& x, const QuantizerSpec& quantizer) { Copies({&x, 1}, quantizer).expectEqual(); }

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
        const std::vector<std::byte> memory = expectedCopy(x, {.format = format}, Usage::Rowwise);
        const TensorSpec spec = copySpec(x, {.format = format}, Usage::Rowwise);
        Tensor out = Tensor::zeros(x.spec);
        launchDequantize({.codes = reinterpret_cast<const std::uint8_t*>(memory.data()),
                          .inverseScale = reinterpret_cast<const float*>(memory.data() + partsOf(spec).scalesOffset),
                          .code = format == ElementFormat::E5M2 ? device::FloatCode::E5M2 : device::FloatCode::E4M3,
                          .out = out.data.data(),
                          .element = elementOf(dtype),
                          .elements = x.spec.numElements()},
                         nullptr);
        EXPECT_EQ(out.data, dequantize(fromMemory(spec, memory.data()), Usage::Rowwise)->data) << toString(x.spec);
      }
}

TEST(QuantizeKernel, MakesTheCopiesOfOddSizes) {
  for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2})
    for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
      for (const Shape& shape : {Shape{1, 1}, Shape{33, 47}, Shape{2, 5, 64}, Shape{130, 136}, Shape{144, 257}})
        expectEqualCopies(waves(dtype, shape, 3.0), {.format = format});
}

TEST(QuantizeKernel, FollowsTheOptionsOfScales) {
  expectEqualCopies(waves(DType::BF16, {7, 9}, 3.0), {.scale = {.isPowerOfTwo = true}});
  expectEqualCopies(waves(DType::F32, {7, 9}, 1e-6), {.scale = {.epsilon = 0.01F}});
  expectEqualCopies(waves(DType::F32, {7, 9}, 1e-38), {});
  expectEqualCopies(waves(DType::F32, {7, 9}, 0.0), {});
}

/// More tensors than a launch supports, small and large ones mixed, and one without rows.
TEST(QuantizeKernel, MakesCopiesOfManyTensorsTogether) {
  std::vector<Tensor> tensors;
  for (const std::int64_t rows : {32, 0, 288, 64, 32, 96, 160, 32, 256, 64, 32, 128, 32, 96, 64, 32, 32, 64, 352})
    tensors.push_back(waves(DType::BF16, {rows, 160}, static_cast<double>(rows)));
  for (const Scaling scaling : {Scaling::PerTensor, Scaling::Mx1x32, Scaling::Block1x128})
    Copies(tensors, {.scaling = scaling}).expectEqual();
}

TEST(WriteKernel, WritesAnyNumberOfValues) {
  for (const std::size_t count : {0, 1, 255, 256, 257, 1000}) {
    std::vector<std::int64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(i * i) - 7;
    std::vector<std::int64_t> written(count + 1, -1);
    launchWrite(values, written.data(), nullptr);
    values.push_back(-1);
    EXPECT_EQ(written, values);
  }
}

TEST(TransposeKernel, TurnsCodesOfAnyNumberOfRows) {
  for (const std::int64_t rows : {1, 7, 16, 33, 128, 257})
    for (const std::int64_t cols : {8, 136, 264}) {
      std::vector<std::uint8_t> codes(static_cast<std::size_t>(rows * cols));
      for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
      std::vector<std::uint8_t> turned(codes.size());
      launchTransposeCodes({.codes = codes.data(), .to = turned.data(), .rows = rows, .cols = cols}, nullptr);
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t col = 0; col < cols; ++col)
          ASSERT_EQ(turned[static_cast<std::size_t>(col * rows + row)],
                    codes[static_cast<std::size_t>(row * cols + col)])
              << rows << " x " << cols << " at " << row << ", " << col;
    }
}

Tensor everyBf16() {
  Tensor x = Tensor::zeros({DType::BF16, {256, 256}});
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto code = static_cast<std::uint16_t>(bits);
    std::memcpy(x.data.data() + std::size_t{bits} * sizeof(code), &code, sizeof(code));
  }
  return x;
}

/// Infinities make the scale 1 and saturate; NaN does not count, and stays.
TEST(QuantizeKernel, CastsEveryBf16ValueAsCoreDoes) {
  for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2})
    expectEqualCopies(everyBf16(), {.format = format});
}

constexpr Scaling kFloat8Blocks[] = {Scaling::Block1x128, Scaling::Block128x128};
constexpr Scaling kMxBlocks[] = {Scaling::Mx1x32, Scaling::Mx32x32};

TEST(BlockQuantizeKernel, MakesTheCopiesOfFloat8Blocks) {
  for (const Scaling scaling : kFloat8Blocks)
    for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2})
      for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
        for (const Shape& shape : {Shape{128, 128}, Shape{2, 128, 384}})
          expectEqualCopies(waves(dtype, shape, 3.0), {.format = format, .scaling = scaling});
}

/// No launch needs to rearrange them: the scales are stored as cuBLASLt reads them, padded with zeros, independent of
/// the memory's former content.
TEST(BlockQuantizeKernel, WritesScalesOfBlocksOf128AsCublasLtReadsThem) {
  for (const Scaling scaling : kFloat8Blocks)
    for (const Shape& shape : {Shape{128, 128}, Shape{256, 640}, Shape{5, 150}, Shape{642, 8}, Shape{1023, 1153}}) {
      const Tensor x = waves(DType::BF16, shape, 3.0);
      const Result<QuantizedTensor> quantized = quantize(x, {.scaling = scaling}, fuseline::Copies::Both);
      ASSERT_TRUE(quantized);
      const QuantizedTensor expected = withScaleLayout(*quantized, ScaleLayout::Gemm);
      const Copies made({&x, 1}, {.scaling = scaling});
      for (const Usage direction : kDirections)
        EXPECT_EQ(made.scales(0, direction), expected.copy(direction)->scaleInv.data)
            << toString(x.spec) << " " << traitsOf(scaling).name << " " << directionName(direction);
    }
}

/// Whole blocks, but parts of tiles.
TEST(BlockQuantizeKernel, MakesTheCopiesOfMxBlocks) {
  for (const Scaling scaling : kMxBlocks)
    for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2})
      for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
        for (const Shape& shape : {Shape{32, 32}, Shape{160, 96}, Shape{3, 64, 288}})
          expectEqualCopies(waves(dtype, shape, 3.0), {.format = format, .scaling = scaling});
}

TEST(BlockQuantizeKernel, FollowsTheOptionsOfScales) {
  for (const Scaling scaling : kFloat8Blocks) {
    expectEqualCopies(waves(DType::BF16, {128, 128}, 3.0), {.scaling = scaling, .scale = {.isPowerOfTwo = true}});
    expectEqualCopies(waves(DType::F32, {128, 128}, 1e-6), {.scaling = scaling, .scale = {.epsilon = 0.01F}});
    for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
      expectEqualCopies(waves(dtype, {128, 128}, 1e-38), {.scaling = scaling});
    expectEqualCopies(waves(DType::F32, {128, 128}, 0.0), {.scaling = scaling});
  }
}

/// The blocks with infinities and NaN among them.
TEST(BlockQuantizeKernel, CastsEveryBf16ValueAsCoreDoes) {
  for (const Scaling scaling : {Scaling::Block1x128, Scaling::Block128x128, Scaling::Mx1x32, Scaling::Mx32x32})
    for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2})
      expectEqualCopies(everyBf16(), {.format = format, .scaling = scaling});
}

/// Rowwise quantized tensors have the tensor's orientation; so have columnwise ones of MX blocks, and others are
/// transposed.
void expectDecodedAsCoreDoes(const Tensor& x, const QuantizerSpec& quantizer, Usage direction) {
  const Scaling scaling = quantizer.scaling;
  const std::vector<std::byte> memory = expectedCopy(x, quantizer, direction);
  const TensorSpec spec = copySpec(x, quantizer, direction);
  Tensor out = Tensor::zeros(x.spec);
  launchDecode(spec, memory.data(), out.data.data(), nullptr);
  const std::vector<double> expected = dequantize(fromMemory(spec, memory.data()), direction)->toDoubles();
  const std::vector<double> stored = out.toDoubles();
  std::vector<double> actual = stored;
  const auto rows = static_cast<std::size_t>(x.spec.shape.front());
  const auto cols = static_cast<std::size_t>(x.spec.shape.back());
  if (direction == Usage::Columnwise && traitsOf(scaling).isColumnwiseTransposed)
    for (std::size_t i = 0; i < actual.size(); ++i) actual[i] = stored[i % cols * rows + i / cols];
  EXPECT_EQ(actual, expected) << toString(x.spec) << " " << traitsOf(scaling).name << " " << directionName(direction);
}

/// More than one tile, less than one, and rows that are no whole packets.
TEST(BlockDequantizeKernel, GivesWhatCoreGives) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const Usage direction : kDirections) {
      for (const Scaling scaling : {Scaling::Block1x128, Scaling::Block128x128})
        for (const Shape& shape : {Shape{128, 256}, Shape{140, 24}, Shape{13, 150}})
          expectDecodedAsCoreDoes(waves(dtype, shape, 3.0), {.scaling = scaling}, direction);
      for (const Scaling scaling : {Scaling::Mx1x32, Scaling::Mx32x32})
        for (const Shape& shape : {Shape{128, 256}, Shape{32, 96}, Shape{160, 32}})
          expectDecodedAsCoreDoes(waves(dtype, shape, 3.0), {.scaling = scaling}, direction);
    }
}

constexpr QuantizerSpec kNvfp4 = {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16};

QuantizerSpec nvfp4(Scaling scaling, bool transformsColumnwise, bool roundsStochastically) {
  QuantizerSpec quantizer = kNvfp4;
  quantizer.scaling = scaling;
  quantizer.transformsColumnwise = transformsColumnwise;
  quantizer.roundsStochastically = roundsStochastically;
  return quantizer;
}

/// Both directions as the kernels quantize several tensors at once. known: whether the amaxes of x are given.
void expectNvfp4Copies(std::span<const Tensor> tensors, const QuantizerSpec& quantizer, bool isKnown = false) {
  const std::string name = "w";
  std::vector<std::array<std::vector<std::byte>, 2>> memory(tensors.size());
  std::vector<float> amaxes;
  for (const Tensor& x : tensors) {
    const std::vector<double> values = x.toDoubles();
    amaxes.push_back(amaxOf(std::vector<float>(values.begin(), values.end())));
  }
  std::vector<Nvfp4Quantization> tasks;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto copyOf = [&](Usage direction) {
      const TensorSpec spec = copySpec(tensors[i], quantizer, direction);
      std::vector<std::byte>& bytes = memory[i][static_cast<std::size_t>(direction)];
      bytes.resize(static_cast<std::size_t>(spec.bytes()));
      device::Nvfp4Copy copy = nvfp4CopyOf(spec, bytes.data());
      copy.isStochastic = quantizer.roundsStochastically;
      copy.random = roundingBytesOf(name, direction);
      return copy;
    };
    tasks.push_back({.x = tensors[i].data.data(),
                     .element = elementOf(tensors[i].spec.dtype),
                     .rows = tensors[i].spec.rows(),
                     .cols = tensors[i].spec.cols(),
                     .rowwise = copyOf(Usage::Rowwise),
                     .columnwise = copyOf(Usage::Columnwise),
                     .hasSquares = hasSquares(quantizer.scaling),
                     .knownAmax = isKnown ? &amaxes[i] : nullptr});
  }
  launchNvfp4Quantize(tasks, nullptr);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (const Usage direction : kDirections) {
      const TensorSpec spec = copySpec(tensors[i], quantizer, direction);
      std::vector<std::byte> expected(static_cast<std::size_t>(spec.bytes()));
      ASSERT_TRUE(quantizeToMemory(tensors[i], quantizer, {.name = name}, spec, expected.data()));
      EXPECT_EQ(memory[i][static_cast<std::size_t>(direction)], expected)
          << i << ": " << toString(tensors[i].spec) << " " << traitsOf(quantizer.scaling).name << " "
          << directionName(direction) << (quantizer.transformsColumnwise ? ", transformed" : "")
          << (quantizer.roundsStochastically ? ", stochastic" : "");
    }
}

/// Less than a tile and more; odd columns, with one value in the last byte.
TEST(Nvfp4Kernel, MakesTheCopiesThatCoreMakes) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const Scaling scaling : {Scaling::Nv1x16, Scaling::Nv16x16})
      for (const bool isStochastic : {false, true})
        for (const Shape& shape : {Shape{64, 128}, Shape{144, 80}, Shape{1, 1}, Shape{33, 47}, Shape{70, 24}}) {
          const Tensor x = waves(dtype, shape, 3.0);
          for (const bool isKnown : {false, true})
            expectNvfp4Copies({&x, 1}, nvfp4(scaling, false, isStochastic), isKnown);
        }
}

/// Rows by sixteens; columns of any number.
TEST(Nvfp4Kernel, TransformsColumnsAsCoreDoes) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const bool isStochastic : {false, true})
      for (const Shape& shape : {Shape{64, 128}, Shape{144, 80}, Shape{16, 1}, Shape{32, 47}})
        for (const double scale : {3.0, 1e-30, 1e4}) {
          const Tensor x = waves(dtype, shape, scale);
          for (const bool isKnown : {false, true})
            expectNvfp4Copies({&x, 1}, nvfp4(Scaling::Nv1x16, true, isStochastic), isKnown);
        }
}

TEST(Nvfp4Kernel, TakesSeveralTensorsAndEmptyOnes) {
  const Tensor tensors[] = {waves(DType::BF16, {32, 64}, 3.0), Tensor::zeros({DType::BF16, {0, 64}}),
                            waves(DType::BF16, {176, 64}, 0.1), Tensor::zeros({DType::BF16, {16, 64}})};
  for (const bool isTransformed : {false, true})
    expectNvfp4Copies(tensors, nvfp4(Scaling::Nv1x16, isTransformed, true));
}

/// Subnormals, infinities and NaN among them.
TEST(Nvfp4Kernel, CastsEveryBf16ValueAsCoreDoes) {
  const Tensor all = everyBf16();
  for (const Scaling scaling : {Scaling::Nv1x16, Scaling::Nv16x16})
    for (const bool isStochastic : {false, true}) expectNvfp4Copies({&all, 1}, nvfp4(scaling, false, isStochastic));
}

TEST(Nvfp4Kernel, GivesTheNumbersThatCoreGives) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const Usage direction : kDirections)
      for (const Scaling scaling : {Scaling::Nv1x16, Scaling::Nv16x16})
        for (const bool isTransformed : {false, true})
          for (const Shape& shape : {Shape{64, 128}, Shape{144, 72}, Shape{48, 47}})
            expectDecodedAsCoreDoes(waves(dtype, shape, 3.0), nvfp4(scaling, isTransformed, false), direction);
}

/// Every scale where withScaleLayout of core puts it, and zeros between.
TEST(ArrangeScales, GivesTheLayoutOfCublasLt) {
  for (const auto& [scaling, shape] :
       std::initializer_list<std::pair<Scaling, Shape>>{{Scaling::Block1x128, {256, 384}},
                                                        {Scaling::Block128x128, {384, 640}},
                                                        {Scaling::Mx1x32, {160, 96}},
                                                        {Scaling::Mx32x32, {160, 288}},
                                                        {Scaling::Nv1x16, {160, 96}},
                                                        {Scaling::Nv16x16, {160, 288}}})
    for (const Usage direction : kDirections) {
      const Tensor x = waves(DType::BF16, shape, 3.0);
      const bool isFp4 = isNvfp4(scaling);
      const QuantizerSpec quantizer = isFp4 ? nvfp4(scaling, false, false) : QuantizerSpec{.scaling = scaling};
      const TensorSpec spec = copySpec(x, quantizer, direction);
      const std::vector<std::byte> memory = expectedCopy(x, quantizer, direction);
      const Tensor expected =
          withScaleLayout(fromMemory(spec, memory.data()), ScaleLayout::Gemm).copy(direction)->scaleInv;
      std::vector<std::byte> arranged(expected.data.size(), std::byte{0xff});
      const ScalePlaces places = scalePlacesOf(spec, scaling, direction);
      launchArrangeScales({.from = memory.data() + partsOf(spec).scalesOffset,
                           .to = arranged.data(),
                           .scaleBytes = static_cast<int>(sizeBytes(expected.spec.dtype)),
                           .map = scaleMapOf(spec, scaling, direction),
                           .rowStride = places.rowStride,
                           .colStride = places.colStride},
                          nullptr);
      EXPECT_EQ(arranged, expected.data) << traitsOf(scaling).name << " " << directionName(direction);
    }
}

/// A block of 128: its power of two four times, at the positions of MXFP8's tiles, and zeros beyond.
TEST(ArrangeScales, GivesBlocksOf128ToMxfp8) {
  for (const auto& [scaling, shape] : std::initializer_list<std::pair<Scaling, Shape>>{
           {Scaling::Block1x128, {160, 384}}, {Scaling::Block128x128, {384, 640}}})
    for (const Usage direction : kDirections) {
      const Tensor x = waves(DType::BF16, shape, 3.0);
      const QuantizerSpec quantizer{.scaling = scaling, .scale = {.isPowerOfTwo = true}};
      const TensorSpec spec = copySpec(x, quantizer, direction);
      const std::vector<std::byte> memory = expectedCopy(x, quantizer, direction);
      const BlockShape matrix = storedMatrixOf(spec, scaling, direction);
      const BlockShape block = blockOf(scaling, direction);
      const std::int64_t blocks = ceilDiv(matrix.cols, 128);
      const ScalePlaces places = scalePlacesOf(spec, scaling, direction);
      const auto* const scales = reinterpret_cast<const float*>(memory.data() + partsOf(spec).scalesOffset);
      std::vector<std::uint8_t> expected(static_cast<std::size_t>(roundedUp(matrix.rows, 128) * blocks * 4));
      for (std::int64_t row = 0; row < matrix.rows; ++row)
        for (std::int64_t inner = 0; inner < blocks * 4; ++inner)
          expected[static_cast<std::size_t>(swizzledOffset(row, inner, blocks * 4))] = static_cast<std::uint8_t>(
              std::ilogb(scales[row / block.rows * places.rowStride + inner / 4 * places.colStride]) + 127);
      std::vector<std::uint8_t> arranged(expected.size(), 0xff);
      launchArrangeScales({.from = scales,
                           .to = arranged.data(),
                           .map = mxScaleMapOf(spec, scaling, direction),
                           .rowStride = places.rowStride,
                           .colStride = places.colStride},
                          nullptr);
      EXPECT_EQ(arranged, expected) << traitsOf(scaling).name << " " << directionName(direction);
    }
}

}  // namespace
}  // namespace fuseline::cuda
