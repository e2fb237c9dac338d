// Quantized tensors in files: every part comes back bit for bit, and a file that lies is refused.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/quantized_tensor.h"

#include "core/quant/quantizer.h"
#include "core/quant/scale_layout.h"
#include "core/tensor/random_tensor.h"
#include "core/tensor/safetensors.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using testing::TemporaryFolder;

constexpr Scaling kScalings[] = {Scaling::PerTensor, Scaling::Block1x128, Scaling::Block128x128, Scaling::Mx1x32,
                                 Scaling::Mx32x32,   Scaling::Nv1x16,     Scaling::Nv16x16};

QuantizedTensor quantizedRandom(Scaling scaling, const Shape& shape, Copies copies) {
  const bool isFp4 = isNvfp4(scaling);
  const QuantizerSpec spec = {.format = isFp4 ? ElementFormat::E2M1 : ElementFormat::E5M2, .scaling = scaling};
  return *quantize(randomNormal({DType::BF16, shape}, 1, "x"), spec, copies);
}

void expectSame(const std::optional<QuantizedCopy>& actual, const std::optional<QuantizedCopy>& expected) {
  RC_ASSERT(actual.has_value() == expected.has_value());
  if (!actual) return;
  RC_ASSERT(actual->data.spec == expected->data.spec && actual->data.data == expected->data.data);
  RC_ASSERT(actual->scaleInv.spec == expected->scaleInv.spec && actual->scaleInv.data == expected->scaleInv.data);
  RC_ASSERT(actual->amax == expected->amax);
}

TEST(QuantizedTensor, ComesBackFromAFileBitForBit) {
  EXPECT_TRUE(rc::check([] {
    const Scaling scaling = *rc::gen::elementOf(std::vector<Scaling>(std::begin(kScalings), std::end(kScalings)));
    const Shape shape = *rc::gen::container<Shape>(static_cast<std::size_t>(*rc::gen::inRange(0, 4)),
                                                   rc::gen::inRange<std::int64_t>(0, 40));
    const Copies copies = *rc::gen::element(Copies::Rowwise, Copies::Columnwise, Copies::Both);
    const ScaleLayout layout = *rc::gen::element(ScaleLayout::Compact, ScaleLayout::Gemm);
    const QuantizedTensor tensor = withScaleLayout(quantizedRandom(scaling, shape, copies), layout);
    const TemporaryFolder folder;
    RC_ASSERT(writeSafetensors(folder / "t.safetensors", toTensors("w", tensor)).hasValue());
    const Result<NamedTensors> read = readSafetensors(folder / "t.safetensors");
    RC_ASSERT(read.hasValue());
    const Result<QuantizedTensor> back = quantizedFromTensors("w", *read);
    RC_ASSERT(back.hasValue());
    RC_ASSERT(back->spec == tensor.spec);
    expectSame(back->rowwise, tensor.rowwise);
    expectSame(back->columnwise, tensor.columnwise);
  }));
}

// [64, 96] in blocks of 32: 6144 encoded values and 192 scales each way; with one scale per tensor 6144 values and 4
// bytes.
TEST(QuantizedTensor, CountsItsBytes) {
  EXPECT_EQ(quantizedRandom(Scaling::Mx1x32, {64, 96}, Copies::Both).bytes(), 2 * (6144 + 192));
  EXPECT_EQ(quantizedRandom(Scaling::PerTensor, {64, 96}, Copies::Rowwise).bytes(), 6144 + 4);
  EXPECT_EQ(quantizedRandom(Scaling::Nv1x16, {64, 96}, Copies::Rowwise).bytes(), 3072 + 384 + 4);
}

std::vector<std::string> namesOf(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

TEST(QuantizedTensor, NamesItsParts) {
  const NamedTensors tensors = toTensors("w", quantizedRandom(Scaling::Nv1x16, {16, 16}, Copies::Both));
  EXPECT_EQ(namesOf(tensors),
            (std::vector<std::string>{"w.spec", "w.data", "w.scale_inv", "w.amax", "w.columnwise_data",
                                      "w.columnwise_scale_inv", "w.columnwise_amax"}));
}

std::string errorOf(NamedTensors tensors) {
  const Result<QuantizedTensor> result = quantizedFromTensors("w", tensors);
  return result ? "no error" : result.error().message;
}

Tensor textTensor(const std::string& text) {
  Tensor tensor = Tensor::zeros({DType::U8, {static_cast<std::int64_t>(text.size())}});
  std::transform(text.begin(), text.end(), tensor.data.begin(), [](char c) { return static_cast<std::byte>(c); });
  return tensor;
}

TEST(QuantizedTensor, RefusesWhatDoesNotFitItsSpec) {
  const NamedTensors good = toTensors("w", quantizedRandom(Scaling::Mx1x32, {4, 64}, Copies::Rowwise));
  EXPECT_EQ(errorOf({}), "w.spec: this tensor is missing; is w quantized?");
  EXPECT_EQ(errorOf({good[0], good[1]}), "w.scale_inv: this tensor is missing.");
  EXPECT_EQ(errorOf({good[0], {"w.data", good[2].second}, good[2]}),
            "w.data is [4, 2] u8, but by its spec it is [4, 64] u8.");
  EXPECT_EQ(errorOf({{"w.spec", textTensor("{")}}), "w.spec: This is not JSON: byte 2 does not fit.");
  EXPECT_EQ(errorOf({{"w.spec", textTensor(R"({"dtype": "f32", "shape": [1e30, 1], "format": "e4m3"})")}}),
            "w.spec: /shape: this is not a valid tensor shape.");
  EXPECT_EQ(errorOf({{"w.spec", textTensor(R"({"dtype": "f32", "shape": [1], "format": "e9m9"})")}}),
            "w.spec: /format: 'e9m9' is unknown.");
}

}  // namespace
}  // namespace fuseline
