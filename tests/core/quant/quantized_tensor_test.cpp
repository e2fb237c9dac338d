// Sizes of quantized tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/quantized_tensor.h"

#include "core/quant/quantizer.h"
#include "core/tensor/random_tensor.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

QuantizedTensor quantizedRandom(Scaling scaling, const Shape& shape, Copies copies) {
  const bool isFp4 = isNvfp4(scaling);
  const QuantizerSpec spec = {.format = isFp4 ? ElementFormat::E2M1 : ElementFormat::E5M2, .scaling = scaling};
  return *quantize(randomNormal({DType::BF16, shape}, 1, "x"), spec, copies);
}

// [64, 96] in blocks of 32: 6144 encoded values and 192 scales each way; with one scale per tensor 6144 values and 4
// bytes.
TEST(QuantizedCopy, CountsItsBytes) {
  const QuantizedTensor both = quantizedRandom(Scaling::Mx1x32, {64, 96}, Copies::Both);
  EXPECT_EQ(both.rowwise->bytes(), 6144 + 192);
  EXPECT_EQ(both.columnwise->bytes(), 6144 + 192);
  EXPECT_EQ(quantizedRandom(Scaling::PerTensor, {64, 96}, Copies::Rowwise).rowwise->bytes(), 6144 + 4);
  EXPECT_EQ(quantizedRandom(Scaling::Nv1x16, {64, 96}, Copies::Rowwise).rowwise->bytes(), 3072 + 384 + 4);
}

}  // namespace
}  // namespace fuseline
